// SPDX-License-Identifier: MIT
// MCP over a stream of lines, as stdio is.
#pragma once

#include "framework/log.hpp"
#include "framework/loop.hpp"
#include "plugins/mcp/connection.hpp"
#include "plugins/mcp/mcp.hpp"

namespace stockade {

struct StreamServerOptions {
  mcp::ConnectionOptions connection;
  std::size_t max_message = 4U << 20;     // bytes
  std::chrono::milliseconds linger{500};  // for calls in flight when the client has closed its end
};

class McpStreamServer final : public McpServer {
 public:
  McpStreamServer(Loop& loop, mcp::ToolBox tools, StreamServerOptions options, Log log)
      : loop_(loop), tools_(std::move(tools)), options_(std::move(options)), log_(std::move(log)) {}
  Task<> serve(McpChannel& channel, std::shared_ptr<SessionLog> session,
               AbortSignal abort) override;

 private:
  Loop& loop_;
  mcp::ToolBox tools_;
  StreamServerOptions options_;
  Log log_;
};

}  // namespace stockade
