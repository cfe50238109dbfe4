// SPDX-License-Identifier: MIT
#include "plugins/mcp-http/http_endpoint.hpp"

#include <algorithm>

#include "framework/error.hpp"
#include "framework/json.hpp"
#include "framework/random.hpp"

namespace stockade::mcp {

namespace {

constexpr int kHeaderMismatch = -32020;

// `localhost`, `127.0.0.1` or `[::1]`, with or without a port.
bool is_local_authority(std::string_view authority) {
  for (std::string_view name : {"localhost", "127.0.0.1", "[::1]"}) {
    if (!authority.starts_with(name)) continue;
    std::string_view rest = authority.substr(name.size());
    if (rest.empty()) return true;
    if (rest.front() != ':' || rest.size() < 2 || rest.size() > 6) return false;
    return rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
  }
  return false;
}

void respond_json(http::Exchange& exchange, int status, const rpc::Json& json,
                  http::Headers headers = {}) {
  headers["Content-Type"] = "application/json";
  exchange.respond(status, headers, json_text(json));
}

void refuse(http::Exchange& exchange, int status, const std::string& why,
            http::Headers headers = {}) {
  rpc::Json error{{"jsonrpc", "2.0"},
                  {"error", {{"code", rpc::kInvalidRequest}, {"message", why}}}};
  respond_json(exchange, status, error, std::move(headers));
}

}  // namespace

bool is_local_host(const std::string& host) {
  return is_local_authority(host);
}

bool is_local_origin(const std::string& origin) {
  for (std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme)) return is_local_authority(origin.substr(scheme.size()));
  return false;
}

bool same_secret(const std::string& given, const std::string& wanted) {
  unsigned char different = given.size() == wanted.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size() && !wanted.empty(); ++i)
    different = static_cast<unsigned char>(different |
                                           (static_cast<unsigned char>(given[i]) ^
                                            static_cast<unsigned char>(wanted[i % wanted.size()])));
  return different == 0 && !wanted.empty();
}

std::optional<std::string> decode_header(const std::string& value) {
  constexpr std::string_view kBegin = "=?base64?";
  if (!value.starts_with(kBegin) || !value.ends_with("?=") || value.size() < kBegin.size() + 2)
    return value;
  std::string text;
  unsigned bits = 0;
  int count = 0;
  for (char c : value.substr(kBegin.size(), value.size() - kBegin.size() - 2)) {
    if (c == '=') break;
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    auto digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<unsigned>(digit);
    if ((count += 6) >= 8) text += static_cast<char>(bits >> (count -= 8) & 0xFF);
  }
  return text;
}

// A Connection whose messages go to the request that they belong to: a session of the legacy era,
// or one call of the current one, which may go through several requests.
class HttpEndpoint::Client final : public Outlet, public std::enable_shared_from_this<Client> {
 public:
  Client(HttpEndpoint& endpoint, bool modern)
      : modern_(modern),
        endpoint_(endpoint),
        connection(endpoint.loop_, endpoint.tools_, endpoint.options_.connection, endpoint.session_,
                   *this, endpoint.log_) {}

  // Answers `request` on `exchange`.
  void take(const rpc::Request& request, std::shared_ptr<http::Exchange> exchange) {
    auto pending = std::make_shared<Pending>(endpoint_.loop_);
    pending->exchange = exchange;
    auto found = pending_.find(request.id);
    if (found != pending_.end())
      return refuse(*exchange, 400, "a request with this id is in flight; ids must not repeat");
    pending_[request.id] = pending;
    std::weak_ptr<Client> weak = weak_from_this();
    // One whose client has gone is nobody's any more.
    exchange->on_gone([weak, id = request.id] {
      auto client = weak.lock();
      if (!client) return;
      client->pending_.erase(id);
      client->connection.cancel(id);
    });
    pending->keep_alive = [this, pending_weak = std::weak_ptr<Pending>(pending)] {
      auto waiting = pending_weak.lock();
      if (!waiting) return;
      begin_stream(*waiting);
      if (!waiting->exchange->saturated()) waiting->exchange->stream(":\n\n");
      waiting->timer.start(endpoint_.options_.quiet, waiting->keep_alive);
    };
    pending->timer.start(endpoint_.options_.quiet, pending->keep_alive);
    connection.receive(exchange->request().body);
  }

  void send(const rpc::Json& message, const nlohmann::json& about) override {
    auto found = pending_.find(about);
    if (found == pending_.end()) return;  // its client has gone
    auto pending = found->second;
    bool final = !message.contains("method");
    if (final) pending_.erase(found);
    if (final && !pending->exchange->streaming()) {
      pending->timer.stop();
      http::Headers headers;
      if (!session_header.empty()) headers["Mcp-Session-Id"] = std::exchange(session_header, {});
      return respond_json(*pending->exchange, modern_ ? status_of(message) : 200, message, headers);
    }
    begin_stream(*pending);
    pending->exchange->stream("event: message\ndata: " + json_text(message) + "\n\n");
    if (!final) return;
    pending->timer.stop();
    pending->exchange->end_stream();
  }

  bool saturated() const override {
    return std::any_of(pending_.begin(), pending_.end(),
                       [](const auto& each) { return each.second->exchange->saturated(); });
  }

  std::string session_header;  // goes out with the first answer
  std::uint64_t used = 0;

 private:
  struct Pending {
    explicit Pending(Loop& loop) : timer(loop) {}
    std::shared_ptr<http::Exchange> exchange;
    Timer timer;
    std::function<void()> keep_alive;
  };

  static void begin_stream(Pending& pending) {
    if (!pending.exchange->streaming())
      pending.exchange->begin_stream({{"Content-Type", "text/event-stream"},
                                      {"Cache-Control", "no-cache"},
                                      {"X-Accel-Buffering", "no"}});
  }

  static int status_of(const rpc::Json& message) {
    if (!message.contains("error")) return 200;
    int code = message["error"]["code"].get<int>();
    if (code == rpc::kMethodNotFound) return 404;
    return code == rpc::kInternalError ? 500 : 400;
  }

  bool modern_;
  HttpEndpoint& endpoint_;
  std::map<nlohmann::json, std::shared_ptr<Pending>> pending_;

 public:
  Connection connection;  // last: what it still runs sends through the rest
};

HttpEndpoint::HttpEndpoint(Loop& loop, ToolBox tools, EndpointOptions options,
                           std::shared_ptr<SessionLog> session, Log log)
    : loop_(loop),
      tools_(std::move(tools)),
      options_(std::move(options)),
      session_(std::move(session)),
      log_(std::move(log)) {}

HttpEndpoint::~HttpEndpoint() = default;

bool HttpEndpoint::admitted(http::Exchange& exchange) const {
  const auto& request = exchange.request();
  auto no = [&](int status, const std::string& why, http::Headers headers = {}) {
    refuse(exchange, status, why, std::move(headers));
    return false;
  };
  if (!is_local_host(request.header("host"))) return no(403, "the Host is not this machine");
  if (request.headers.contains("origin") && !is_local_origin(request.header("origin")))
    return no(403, "the Origin is not this machine");
  const std::string authorization = request.header("authorization");
  if (!authorization.starts_with("Bearer ") ||
      !same_secret(authorization.substr(7), options_.token))
    return no(401, "the bearer token is missing or wrong", {{"WWW-Authenticate", "Bearer"}});
  if (request.target != "/mcp") return no(404, "the endpoint is /mcp");
  return true;
}

void HttpEndpoint::on_request(std::shared_ptr<http::Exchange> exchange) {
  if (!admitted(*exchange)) return;
  const auto& request = exchange->request();
  if (request.method == "POST") {
    if (!request.header("content-type").starts_with("application/json"))
      return refuse(*exchange, 415, "the content type is application/json");
    const std::string accept = request.header("accept");
    bool any = accept.find("*/*") != std::string::npos;
    if (!any && (accept.find("application/json") == std::string::npos ||
                 accept.find("text/event-stream") == std::string::npos))
      return refuse(*exchange, 406, "accept application/json and text/event-stream");
    return on_message(exchange);
  }
  if (request.method == "DELETE") {
    auto session = legacy_.find(request.header("mcp-session-id"));
    if (session == legacy_.end()) return refuse(*exchange, 404, "there is no such session");
    session->second->connection.close("the client ended its session");
    legacy_.erase(session);
    return exchange->respond(204, {}, "");
  }
  refuse(*exchange, 405, "POST a message, or DELETE a session", {{"Allow", "POST, DELETE"}});
}

void HttpEndpoint::on_message(const std::shared_ptr<http::Exchange>& exchange) {
  rpc::Message message = rpc::read_message(exchange->request().body);
  if (auto* invalid = std::get_if<rpc::Invalid>(&message))
    return respond_json(*exchange, 400, rpc::error(invalid->id, invalid->code, invalid->message));
  if (auto* request = std::get_if<rpc::Request>(&message)) {
    auto meta = read_meta(request->params);
    if (auto* error = std::get_if<MetaError>(&meta))
      return respond_json(*exchange, 400,
                          rpc::error(request->id, error->code, error->message, error->data));
    if (std::get<std::optional<ClientFacts>>(meta)) return on_modern(exchange, *request);
  }
  on_legacy(exchange, message);
}

std::shared_ptr<HttpEndpoint::Client> HttpEndpoint::make_client(bool modern) {
  return std::make_shared<Client>(*this, modern);
}

void HttpEndpoint::on_modern(const std::shared_ptr<http::Exchange>& exchange,
                             const rpc::Request& request) {
  // What an intermediary went by must be what is carried out.
  auto mirrors = [&](const char* header, const nlohmann::json& body) {
    auto found = exchange->request().headers.find(header);
    auto value =
        found == exchange->request().headers.end() ? std::nullopt : decode_header(found->second);
    if (value && body.is_string() && *value == body.get_ref<const std::string&>()) return true;
    respond_json(*exchange, 400,
                 rpc::error(request.id, kHeaderMismatch,
                            std::string("Header mismatch: ") + header +
                                " is missing or does not match the body"));
    return false;
  };
  if (!mirrors("mcp-protocol-version",
               request.params["_meta"]["io.modelcontextprotocol/protocolVersion"]) ||
      !mirrors("mcp-method", request.method))
    return;
  if (request.method == "tools/call" &&
      !mirrors("mcp-name", request.params.value("name", nlohmann::json())))
    return;
  modern_.remove_if([](const auto& client) { return client->connection.calls() == 0; });

  auto state = request.params.value("requestState", nlohmann::json());
  std::shared_ptr<Client> client;
  for (const auto& each : modern_)
    if (state.is_string() && each->connection.waits_for(state.get<std::string>())) client = each;
  if (!client) {
    client = make_client(true);
    if (modern_.size() >= options_.connection.max_calls)
      return refuse(*exchange, 503, "too many calls run already; wait for one to end");
    modern_.push_back(client);
  }
  client->take(request, exchange);
}

void HttpEndpoint::on_legacy(const std::shared_ptr<http::Exchange>& exchange,
                             const rpc::Message& message) {
  const std::string version = exchange->request().header("mcp-protocol-version");
  if (!version.empty() &&
      std::find(std::begin(kLegacy), std::end(kLegacy), version) == std::end(kLegacy))
    return refuse(*exchange, 400, "MCP-Protocol-Version names no version of a session");
  const auto* request = std::get_if<rpc::Request>(&message);
  std::shared_ptr<Client> client;
  if (request && request->method == "initialize") {
    forget_idle();
    if (legacy_.size() >= options_.max_sessions)
      return refuse(*exchange, 503, "too many sessions are busy; end one, then retry");
    client = make_client(false);
    client->session_header = random_hex(16);
    legacy_[client->session_header] = client;
  } else {
    const std::string id = exchange->request().header("mcp-session-id");
    if (id.empty())
      return refuse(*exchange, 400,
                    "Mcp-Session-Id is missing: send \"initialize\" first, or the protocol version "
                    "in _meta");
    auto found = legacy_.find(id);
    if (found == legacy_.end()) return refuse(*exchange, 404, "there is no such session");
    client = found->second;
  }
  client->used = ++clock_;
  if (request) return client->take(*request, exchange);
  client->connection.receive(exchange->request().body);
  exchange->respond(202, {}, "");
}

void HttpEndpoint::forget_idle() {
  while (legacy_.size() >= options_.max_sessions) {
    auto oldest = legacy_.end();
    for (auto each = legacy_.begin(); each != legacy_.end(); ++each)
      if (each->second->connection.calls() == 0 &&
          (oldest == legacy_.end() || each->second->used < oldest->second->used))
        oldest = each;
    if (oldest == legacy_.end()) return;
    legacy_.erase(oldest);
  }
}

std::size_t HttpEndpoint::calls() const {
  std::size_t sum = 0;
  for (const auto& client : modern_) sum += client->connection.calls();
  for (const auto& each : legacy_) sum += each.second->connection.calls();
  return sum;
}

void HttpEndpoint::close(const std::string& reason) {
  for (const auto& client : modern_) client->connection.close(reason);
  for (const auto& each : legacy_) each.second->connection.close(reason);
}

}  // namespace stockade::mcp
