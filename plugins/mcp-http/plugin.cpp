// SPDX-License-Identifier: MIT
#include "framework/plugin.hpp"
#include "framework/error.hpp"
#include "plugins/mcp-http/http_endpoint.hpp"
#include "plugins/mcp-http/mcp_http.hpp"
#include "plugins/mcp/tool_names.hpp"

namespace stockade {
namespace {

struct McpHttpConfig {
  std::vector<std::string> tools = mcp::default_tools();
  std::int64_t max_calls = 32;  // at once, of each session
  std::int64_t max_message_bytes = 4194304;
  std::int64_t max_connections = 64;
  std::int64_t approval_timeout_ms = 600000;
};

void check(const McpHttpConfig& config) {
  auto positive = [](std::int64_t value, const std::string& key) {
    if (value <= 0)
      throw Error("CONFIG_INVALID", "mcp-http: " + key + " must be positive", "$." + key);
  };
  positive(config.max_calls, "maxCalls");
  positive(config.max_message_bytes, "maxMessageBytes");
  positive(config.max_connections, "maxConnections");
  positive(config.approval_timeout_ms, "approvalTimeoutMs");
}

class LocalHttpServer final : public McpHttpServer {
 public:
  LocalHttpServer(Context context, McpHttpConfig config)
      : context_(std::move(context)), config_(std::move(config)) {}

  Task<> serve(std::uint16_t port, std::string token, std::shared_ptr<SessionLog> session,
               std::function<void(std::uint16_t)> on_listening, AbortSignal abort) override {
    mcp::EndpointOptions options;
    options.connection.version = STOCKADE_VERSION;
    options.connection.max_calls = static_cast<std::size_t>(config_.max_calls);
    options.connection.approval_timeout = std::chrono::milliseconds(config_.approval_timeout_ms);
    options.token = std::move(token);
    mcp::HttpEndpoint endpoint(context_.loop(), mcp::tool_box(context_, config_.tools),
                               std::move(options), std::move(session), context_.log());
    http::Limits limits;
    limits.body_bytes = static_cast<std::size_t>(config_.max_message_bytes);
    limits.connections = static_cast<std::size_t>(config_.max_connections);
    std::optional<http::Server> server;
    server.emplace(context_.loop(), port, limits, [&](std::shared_ptr<http::Exchange> exchange) {
      endpoint.on_request(std::move(exchange));
    });
    on_listening(server->port());

    Completion<> over(context_.loop());
    AbortSubscription stop = abort.on_abort([over] { over.settle(); });
    if (!abort.aborted()) co_await over;
    endpoint.close("the server was told to stop");
    server.reset();
    while (endpoint.calls() > 0) {
      auto pause = sleep(context_.loop(), std::chrono::milliseconds(10));
      co_await pause;
    }
  }

 private:
  Context context_;
  McpHttpConfig config_;
};

Task<> apply(Context context, McpHttpConfig config) {
  context.provide<McpHttpServer>(std::make_shared<LocalHttpServer>(context, std::move(config)));
  co_return;
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("mcp-http", ({}), stockade::apply, stockade::check)
