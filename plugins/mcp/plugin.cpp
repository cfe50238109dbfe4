// SPDX-License-Identifier: MIT
#include "framework/plugin.hpp"
#include "framework/error.hpp"
#include "plugins/mcp/stream_server.hpp"
#include "plugins/mcp/tool_names.hpp"

namespace stockade {
namespace {

struct McpConfig {
  // Those of them that are there are offered, in this order.
  std::vector<std::string> tools = mcp::default_tools();
  std::int64_t max_calls = 32;               // at once
  std::int64_t max_message_bytes = 4194304;  // of one line from the client
  std::int64_t approval_timeout_ms = 600000;
  std::int64_t linger_ms = 500;  // for calls in flight when the client has closed its end
};

void check(const McpConfig& config) {
  auto positive = [](std::int64_t value, const std::string& key) {
    if (value <= 0) throw Error("CONFIG_INVALID", "mcp: " + key + " must be positive", "$." + key);
  };
  positive(config.max_calls, "maxCalls");
  positive(config.max_message_bytes, "maxMessageBytes");
  positive(config.approval_timeout_ms, "approvalTimeoutMs");
  positive(config.linger_ms, "lingerMs");
}

Task<> apply(Context context, McpConfig config) {
  StreamServerOptions options;
  options.connection.version = STOCKADE_VERSION;
  options.connection.max_calls = static_cast<std::size_t>(config.max_calls);
  options.connection.approval_timeout = std::chrono::milliseconds(config.approval_timeout_ms);
  options.max_message = static_cast<std::size_t>(config.max_message_bytes);
  options.linger = std::chrono::milliseconds(config.linger_ms);
  context.provide<McpServer>(std::make_shared<McpStreamServer>(
      context.loop(), mcp::tool_box(context, config.tools), std::move(options), context.log()));
  co_return;
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("mcp", ({}), stockade::apply, stockade::check)
