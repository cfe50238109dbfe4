// SPDX-License-Identifier: MIT
// `ctx.mcpHttp`: MCP over Streamable HTTP, for clients on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "framework/abort.hpp"
#include "framework/task.hpp"
#include "plugins/session.hpp"

namespace stockade {

class McpHttpServer {
 public:
  static constexpr std::string_view service = "mcpHttp/1";
  virtual ~McpHttpServer() = default;
  // Serves `http://127.0.0.1:PORT/mcp` until `abort`; then every call is ended, and the task with
  // the last. Every request must bring `token`. `on_listening` is told the port. Throws Error
  // `PORT_UNUSABLE`. Hold the service meanwhile.
  virtual Task<> serve(std::uint16_t port, std::string token, std::shared_ptr<SessionLog> session,
                       std::function<void(std::uint16_t port)> on_listening, AbortSignal abort) = 0;
};

}  // namespace stockade
