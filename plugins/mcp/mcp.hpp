// SPDX-License-Identifier: MIT
// `ctx.mcp`: serves the host's tools to a client that speaks the Model Context Protocol.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "framework/abort.hpp"
#include "framework/completion.hpp"
#include "framework/task.hpp"
#include "plugins/session.hpp"

namespace stockade {

// Both ends of the stream between server and client.
class McpChannel {
 public:
  virtual ~McpChannel() = default;
  // The next bytes as they come; "" at the end of the stream, and when `abort` ends the wait.
  virtual Task<std::string> read(AbortSignal abort) = 0;
  virtual void write(std::string_view bytes) = 0;  // never blocks; queues
  virtual bool saturated() const = 0;              // more is queued than should be
  virtual bool broken() const = 0;                 // the client does not read any more
  virtual Completion<> drained() const = 0;        // what was written is taken, or dropped
};

class McpServer {
 public:
  static constexpr std::string_view service = "mcp/1";
  virtual ~McpServer() = default;
  // Until the client closes its end, the channel breaks, or `abort`; then every call is ended, and
  // the task with the last. Calls belong to `session`. The channel outlives the task; hold the
  // service meanwhile.
  virtual Task<> serve(McpChannel& channel, std::shared_ptr<SessionLog> session,
                       AbortSignal abort) = 0;
};

}  // namespace stockade
