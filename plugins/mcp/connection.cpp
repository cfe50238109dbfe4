// SPDX-License-Identifier: MIT
#include "plugins/mcp/connection.hpp"

#include <algorithm>

#include "framework/error.hpp"
#include "framework/json.hpp"
#include "framework/random.hpp"
#include "plugins/mcp/elicitation.hpp"

namespace stockade::mcp {

namespace {

using rpc::Json;

constexpr const char* kInstructions =
    "Commands run behind a file-effect sandbox. A result that ends with \"[sandbox: file access "
    "denied under MODE mode]\" was stopped by it: do the work within the workspace, or, where the "
    "result offers it, repeat the same command once with sandbox_permissions and a justification. "
    "Other failures are the command's own.";

// The last line that says something, of what a command has just printed.
std::string last_line(const std::string& tail) {
  constexpr std::size_t kMost = 200;
  std::size_t end = tail.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return {};
  std::size_t start = tail.find_last_of('\n', end);
  start = start == std::string::npos ? 0 : start + 1;
  // Where the tail begins in the middle of a character.
  while (start < end && (static_cast<unsigned char>(tail[start]) & 0xC0) == 0x80) ++start;
  std::string line = tail.substr(start, end + 1 - start);
  if (line.size() > kMost) {
    line.resize(kMost);
    while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0xC0) == 0x80)
      line.pop_back();
    if (!line.empty()) line.pop_back();  // the lead byte of a character that was cut
  }
  return line;
}

}  // namespace

struct Connection::Call {
  explicit Call(Loop& loop) : timer(loop), expiry(loop) {}
  nlohmann::json id;  // of the request that waits for the answer; null while none does
  ClientFacts client;
  bool cancelled = false;  // nobody wants the answer any more
  AbortController abort;
  std::string name;          // in logs
  std::string tool;          // with `arguments`, what a retry must repeat
  nlohmann::json arguments;  // kept for a modern client only
  std::shared_ptr<Answerer> answerer;

  nlohmann::json progress_token;
  std::uint64_t bytes = 0;
  std::uint64_t reported = 0;
  std::string tail;
  Timer timer;  // until the next report

  // While it is suspended, waiting for the retry that brings the answer.
  std::string token;
  Json form;
  std::optional<Completion<EscalationOutcome>> question;
  Timer expiry;
};

class Connection::ClientAnswerer final : public Answerer {
 public:
  ClientAnswerer(Connection& connection, std::weak_ptr<Call> call)
      : connection_(connection), call_(std::move(call)) {}
  Task<std::optional<EscalationOutcome>> answer(Escalation escalation, AbortSignal) override {
    auto call = call_.lock();
    if (!call) co_return std::nullopt;
    auto asking = connection_.ask(std::move(call), std::move(escalation));
    std::optional<EscalationOutcome> outcome = co_await asking;
    co_return outcome;
  }

 private:
  Connection& connection_;
  std::weak_ptr<Call> call_;
};

Connection::Connection(Loop& loop, ToolBox tools, ConnectionOptions options,
                       std::shared_ptr<SessionLog> session, Outlet& outlet, Log log)
    : loop_(loop),
      tools_(std::move(tools)),
      options_(std::move(options)),
      session_(std::move(session)),
      outlet_(outlet),
      log_(std::move(log)),
      running_(loop, [this](std::exception_ptr error) {
        log_.error("a call failed: " + describe(error));
      }) {}

Connection::~Connection() {
  closed_ = true;
}

void Connection::reply(const nlohmann::json& id, bool modern, Json result) {
  if (modern) {
    if (!result.contains("resultType")) result["resultType"] = "complete";
    result["_meta"]["io.modelcontextprotocol/serverInfo"] = {{"name", "stockade"},
                                                             {"version", options_.version}};
  }
  if (!closed_) outlet_.send(rpc::result(id, std::move(result)), id);
}

void Connection::reply_error(const nlohmann::json& id, int code, const std::string& message,
                             Json data) {
  if (!closed_) outlet_.send(rpc::error(id, code, message, std::move(data)), id);
}

void Connection::receive(std::string_view line) {
  rpc::Message message = rpc::read_message(line);
  if (auto* request = std::get_if<rpc::Request>(&message)) {
    on_request(std::move(*request));
  } else if (auto* notification = std::get_if<rpc::Notification>(&message)) {
    on_notification(*notification);
  } else if (auto* response = std::get_if<rpc::Response>(&message)) {
    on_response(*response);
  } else {
    const auto& invalid = std::get<rpc::Invalid>(message);
    log_.debug("a client sent what is no message: " + invalid.message);
    if (invalid.answer) reply_error(invalid.id, invalid.code, invalid.message);
  }
}

void Connection::receive_overlong(std::size_t limit) {
  reply_error(nullptr, rpc::kParseError,
              "a message has more than " + std::to_string(limit) + " bytes; it was dropped");
}

void Connection::on_request(rpc::Request request) {
  if (in_flight_.contains(request.id))
    return reply_error(request.id, rpc::kInvalidRequest,
                       "a request with this id is in flight; ids must not repeat");
  auto meta = read_meta(request.params);
  if (auto* error = std::get_if<MetaError>(&meta))
    return reply_error(request.id, error->code, error->message, error->data);
  const auto& modern = std::get<std::optional<ClientFacts>>(meta);
  if (modern)
    on_modern(request, *modern);
  else
    on_legacy(request);
}

void Connection::on_modern(const rpc::Request& request, const ClientFacts& client) {
  if (request.method == "server/discover")
    return reply(request.id, true,
                 {{"supportedVersions", supported_versions()},
                  {"capabilities", {{"tools", Json::object()}, {"logging", Json::object()}}},
                  {"instructions", kInstructions},
                  {"ttlMs", 0},
                  {"cacheScope", "private"}});
  if (request.method == "tools/list") return list_tools(request, true);
  if (request.method == "tools/call") return call_tool(request, client);
  reply_error(request.id, rpc::kMethodNotFound, "Method not found: " + request.method);
}

void Connection::on_legacy(const rpc::Request& request) {
  if (request.method == "ping") return reply(request.id, false, Json::object());
  if (request.method == "initialize") return initialize(request);
  if (!legacy_)
    return reply_error(request.id, rpc::kInvalidParams,
                       "not initialized: send \"initialize\" first, or the protocol version and "
                       "client capabilities in _meta",
                       {{"supported", supported_versions()}});
  if (request.method == "tools/list") return list_tools(request, false);
  if (request.method == "tools/call") return call_tool(request, *legacy_);
  if (request.method == "logging/setLevel") {
    auto level = request.params.value("level", nlohmann::json());
    if (!level.is_string() || !log_severity(level.get<std::string>()))
      return reply_error(request.id, rpc::kInvalidParams, "unknown log level");
    legacy_->log_level = level.get<std::string>();
    return reply(request.id, false, Json::object());
  }
  reply_error(request.id, rpc::kMethodNotFound, "Method not found: " + request.method);
}

void Connection::initialize(const rpc::Request& request) {
  if (legacy_)
    return reply_error(request.id, rpc::kInvalidRequest, "this connection is initialized already");
  std::string version = negotiate(request.params.value("protocolVersion", nlohmann::json()));
  ClientFacts client;
  client.elicits_forms =
      elicits_forms(request.params.value("capabilities", nlohmann::json::object()));
  client.form_mode_named = version == kLatestLegacy;
  client.log_level = "warning";
  legacy_ = std::move(client);
  reply(request.id, false,
        {{"protocolVersion", version},
         {"capabilities", {{"tools", {{"listChanged", false}}}, {"logging", Json::object()}}},
         {"serverInfo",
          {{"name", "stockade"},
           {"title", "stockade: sandboxed bash"},
           {"version", options_.version}}},
         {"instructions", kInstructions}});
}

void Connection::list_tools(const rpc::Request& request, bool modern) {
  if (request.params.contains("cursor"))
    return reply_error(request.id, rpc::kInvalidParams,
                       "unknown cursor: the list of tools has one page");
  Json list = Json::array();
  for (const auto& tool : tools_.all()) {
    ToolDescription facts = tool->describe();
    list.push_back({{"name", facts.name},
                    {"title", facts.title},
                    {"description", facts.description},
                    {"inputSchema", std::move(facts.input_schema)},
                    {"outputSchema", std::move(facts.output_schema)},
                    {"annotations", std::move(facts.annotations)}});
  }
  Json result{{"tools", std::move(list)}};
  if (modern) {
    result["ttlMs"] = 0;  // a reload may change them
    result["cacheScope"] = "private";
  }
  reply(request.id, modern, std::move(result));
}

void Connection::call_tool(const rpc::Request& request, const ClientFacts& client) {
  auto name = request.params.value("name", nlohmann::json());
  if (!name.is_string())
    return reply_error(request.id, rpc::kInvalidParams, "tools/call needs the \"name\" of a tool");
  if (client.modern && request.params.contains("requestState")) {
    if (!resume_call(request, client))
      reply_error(request.id, rpc::kInvalidParams,
                  "requestState is unknown, expired, or of another call; make the call anew");
    return;
  }
  std::shared_ptr<Tool> tool = tools_.find(name.get<std::string>());
  if (!tool)
    return reply_error(request.id, rpc::kInvalidParams, "Unknown tool: " + name.get<std::string>());
  nlohmann::json arguments = request.params.value("arguments", nlohmann::json::object());

  auto call = std::make_shared<Call>(loop_);
  call->id = request.id;
  call->client = client;
  call->name = "mcp-" + std::to_string(++last_call_);
  call->tool = name.get<std::string>();
  if (client.modern) call->arguments = arguments;
  if (calls_ >= options_.max_calls)
    return finish(call, tool_error("BUSY", std::to_string(calls_) +
                                               " calls run already, which is the limit; wait for "
                                               "one to end, then retry"));
  if (client.elicits_forms)
    call->answerer = std::make_shared<ClientAnswerer>(*this, std::weak_ptr<Call>(call));
  if (auto meta = request.params.find("_meta"); meta != request.params.end() && meta->is_object() &&
                                                meta->contains("progressToken") &&
                                                rpc::is_id((*meta)["progressToken"]))
    call->progress_token = (*meta)["progressToken"];
  in_flight_[request.id] = call;
  ++calls_;
  running_.start(run(call, std::move(tool), std::move(arguments)));
}

Task<> Connection::run(std::shared_ptr<Call> call, std::shared_ptr<Tool> tool,
                       nlohmann::json arguments) {
  ToolCall made;
  made.arguments = std::move(arguments);
  made.abort = call->abort.signal();
  made.id = call->name;
  made.session = session_;
  made.asker = call->answerer;
  if (!call->progress_token.is_null())
    made.on_output = [this, weak = std::weak_ptr<Call>(call)](std::string_view bytes) {
      constexpr std::size_t kTail = 4096;
      auto printing = weak.lock();
      if (!printing) return;
      printing->bytes += bytes.size();
      printing->tail.append(bytes.substr(bytes.size() - std::min(bytes.size(), kTail)));
      if (printing->tail.size() > 2 * kTail) printing->tail.erase(0, printing->tail.size() - kTail);
      if (!printing->timer.running()) report_progress(printing);
    };
  ToolResult result;
  std::exception_ptr failure;
  try {
    auto calling = tool->call(std::move(made));
    result = co_await calling;
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) result = tool_error(code_of(failure, "INTERNAL"), describe(failure));
  --calls_;
  finish(call, result);
  if (calls_ == 0 && idle_) std::exchange(idle_, std::nullopt)->settle();
}

void Connection::finish(const std::shared_ptr<Call>& call, const ToolResult& result) {
  call->timer.stop();
  call->expiry.stop();
  if (!call->token.empty()) suspended_.erase(call->token);
  if (!call->id.is_null()) in_flight_.erase(call->id);
  if (call->cancelled || call->id.is_null()) return;
  log_outcome(*call, result);
  Json answer{{"content", {{{"type", "text"}, {"text", result.text}}}}};
  if (!result.structured.is_null()) answer["structuredContent"] = result.structured;
  answer["isError"] = result.is_error;
  reply(call->id, call->client.modern, std::move(answer));
}

void Connection::report_progress(const std::shared_ptr<Call>& call) {
  if (closed_ || call->cancelled || call->id.is_null() || call->bytes == call->reported) return;
  if (!outlet_.saturated()) {
    call->reported = call->bytes;
    Json params{{"progressToken", call->progress_token}, {"progress", call->bytes}};
    if (std::string line = last_line(call->tail); !line.empty()) params["message"] = line;
    outlet_.send(rpc::notification("notifications/progress", std::move(params)), call->id);
  }
  call->timer.start(options_.progress_interval, [this, weak = std::weak_ptr<Call>(call)] {
    if (auto printing = weak.lock()) report_progress(printing);
  });
}

// What an operator wants to know of a call, in the client's log.
void Connection::log_outcome(const Call& call, const ToolResult& result) {
  auto outcome = result.structured.value("outcome", Json());
  std::string level = outcome == "denied" ? "warning" : outcome == "runner-failed" ? "error" : "";
  // An `initialize` anew, or logging/setLevel, may have changed it since.
  const auto& wanted = call.client.modern || !legacy_ ? call.client.log_level : legacy_->log_level;
  if (closed_ || level.empty() || !wanted || outlet_.saturated() ||
      *log_severity(level) < *log_severity(*wanted))
    return;
  Json data{{"tool", call.tool}, {"outcome", outcome}};
  if (auto sandbox = result.structured.value("sandbox", Json()); sandbox.is_object())
    data["sandbox"] = sandbox;
  if (auto error = result.structured.value("error", Json()); error.is_object())
    data["error"] = error;
  outlet_.send(rpc::notification(
                   "notifications/message",
                   {{"level", level}, {"logger", "stockade.sandbox"}, {"data", std::move(data)}}),
               call.id);
}

void Connection::on_notification(const rpc::Notification& notification) {
  if (notification.method != "notifications/cancelled") return;
  cancel(notification.params.value("requestId", nlohmann::json()));
}

bool Connection::waits_for(const std::string& request_state) const {
  return suspended_.contains(request_state);
}

void Connection::cancel(const nlohmann::json& id) {
  auto found = in_flight_.find(id);
  if (found == in_flight_.end()) return;  // unknown, or over already: a race that the client lost
  std::shared_ptr<Call> call = found->second;
  if (std::exchange(call->cancelled, true)) return;
  // It keeps its id until its processes are gone.
  call->abort.abort("the client cancelled the call");
}

void Connection::on_response(const rpc::Response& response) {
  if (!response.id.is_string()) return;
  auto found = questions_.find(response.id.get<std::string>());
  if (found == questions_.end()) return;
  Completion<EscalationOutcome> question = found->second;
  questions_.erase(found);
  question.settle(response.failed ? EscalationOutcome::unavailable : read_answer(response.value));
}

Task<std::optional<EscalationOutcome>> Connection::ask(std::shared_ptr<Call> call,
                                                       Escalation escalation) {
  if (closed_ || call->cancelled || !call->client.elicits_forms) co_return std::nullopt;
  Json form = approval_form(escalation, call->client.form_mode_named);
  Completion<EscalationOutcome> question(loop_);

  if (call->client.modern) {
    call->question = question;
    call->form = std::move(form);
    call->token = random_hex(16);
    suspended_[call->token] = call;
    nlohmann::json id = std::exchange(call->id, nullptr);
    in_flight_.erase(id);
    ask_again_later(call, id);
    EscalationOutcome outcome = co_await question;
    co_return outcome;
  }

  std::string id = "stockade-" + std::to_string(++last_question_);
  // However this ends, the question does with it; the client is told of one that it has not
  // answered.
  struct Asked {
    Asked(Connection& c, std::shared_ptr<Call> asking, std::string i)
        : connection(c), call(std::move(asking)), id(std::move(i)) {}
    Asked(const Asked&) = delete;
    ~Asked() {
      if (connection.questions_.erase(id) > 0 && !connection.closed_)
        connection.outlet_.send(rpc::notification("notifications/cancelled", {{"requestId", id}}),
                                call->id);
    }
    Connection& connection;
    std::shared_ptr<Call> call;
    std::string id;
  } asked(*this, call, id);
  questions_.emplace(id, question);
  outlet_.send(rpc::request(id, "elicitation/create", std::move(form)), call->id);
  Timer limit(loop_);
  limit.start(options_.approval_timeout,
              [question] { question.settle(EscalationOutcome::unavailable); });
  EscalationOutcome outcome = co_await question;
  co_return outcome;
}

// The interim result of 2026-07-28: the request `id` ends, and another brings the answer.
void Connection::ask_again_later(const std::shared_ptr<Call>& call, const nlohmann::json& id) {
  reply(id, true,
        {{"resultType", "input_required"},
         {"inputRequests",
          {{"approval", {{"method", "elicitation/create"}, {"params", call->form}}}}},
         {"requestState", call->token}});
  call->expiry.start(options_.approval_timeout, [weak = std::weak_ptr<Call>(call)] {
    if (auto waiting = weak.lock()) waiting->question->settle(EscalationOutcome::unavailable);
  });
}

bool Connection::resume_call(const rpc::Request& request, const ClientFacts& client) {
  const auto& state = request.params["requestState"];
  auto found = state.is_string() ? suspended_.find(state.get<std::string>()) : suspended_.end();
  if (found == suspended_.end()) return false;
  std::shared_ptr<Call> call = found->second;
  // A grant is for the call that the user saw.
  if (request.params["name"] != call->tool ||
      request.params.value("arguments", nlohmann::json::object()) != call->arguments)
    return false;
  auto responses = request.params.value("inputResponses", nlohmann::json());
  if (!responses.is_object() || !responses.contains("approval")) {
    ask_again_later(call, request.id);
    return true;
  }
  suspended_.erase(found);
  call->token.clear();
  call->expiry.stop();
  call->id = request.id;
  call->client = client;
  in_flight_[request.id] = call;
  call->question->settle(read_answer(responses["approval"]));
  return true;
}

void Connection::close(const std::string& reason) {
  closed_ = true;
  std::vector<std::shared_ptr<Call>> open;
  for (const auto& each : in_flight_) open.push_back(each.second);
  for (const auto& each : suspended_) open.push_back(each.second);
  for (const auto& call : open) {
    call->cancelled = true;
    call->abort.abort(reason);
  }
}

Completion<> Connection::idle() {
  if (!idle_) idle_.emplace(loop_);
  Completion<> completion = *idle_;
  if (calls_ == 0) std::exchange(idle_, std::nullopt)->settle();
  return completion;
}

}  // namespace stockade::mcp
