// SPDX-License-Identifier: MIT
#include "plugins/mcp/connection.hpp"

#include <deque>

#include "framework/error.hpp"
#include "framework/json.hpp"
#include "plugins/mcp/elicitation.hpp"
#include "plugins/mcp/stream_server.hpp"
#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"

using namespace stockade;
using namespace std::chrono_literals;
using nlohmann::json;
using stockade::test::await_task;
using stockade::test::run_for;
using stockade::test::wait_until;

namespace {

class FakeOutlet final : public mcp::Outlet {
 public:
  void send(const rpc::Json& message, const json&) override {
    sent.push_back(json::parse(message.dump()));
  }
  bool saturated() const override { return full; }
  std::vector<json> sent;
  bool full = false;
};

// Ends when the test says so, or when it is aborted; asks, prints, throws as it is told.
class FakeTool final : public Tool {
 public:
  explicit FakeTool(Loop& loop) : loop_(loop) {}
  ToolDescription describe() const override {
    return {"bash", "Bash", "runs", {{"type", "object"}}, {{"type", "object"}}, {{"x", true}}};
  }
  Task<ToolResult> call(ToolCall call) override {
    seen.push_back(call.arguments);
    if (throws) throw Error("BROKEN", "no");
    if (asks && !call.asker) co_return tool_error("APPROVAL_UNAVAILABLE", "nobody to ask");
    if (asks) {
      auto asking = call.asker->answer({SandboxMode::read_only, SandboxMode::workspace_write, "/w",
                                        "bash", call.id, "why", "make"},
                                       call.abort);
      auto answer = co_await asking;
      outcome = answer;
    }
    if (waits) {
      Completion<> over(loop_);
      open.push_back(over);
      on_output = call.on_output;
      auto stop = call.abort.on_abort([this, over] {
        ++aborted;
        over.settle();
      });
      co_await over;
    }
    ToolResult result{"text", structured, false};
    co_return result;
  }
  std::vector<json> seen;
  std::vector<Completion<>> open;
  std::function<void(std::string_view)> on_output;
  std::optional<EscalationOutcome> outcome;
  nlohmann::ordered_json structured{{"outcome", "ok"}};
  bool asks = false;
  bool waits = false;
  bool throws = false;
  int aborted = 0;

 private:
  Loop& loop_;
};

const json kModernMeta{{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                       {"io.modelcontextprotocol/clientCapabilities", json::object()}};

struct Rig {
  explicit Rig(mcp::ConnectionOptions options = {}) {
    options.version = "1.2";
    mcp::ToolBox tools{[this] { return std::vector<std::shared_ptr<Tool>>{tool}; },
                       [this](std::string_view name) -> std::shared_ptr<Tool> {
                         return name == "bash" ? tool : nullptr;
                       }};
    connection.emplace(loop, tools, options,
                       std::make_shared<MemorySession>(Session{"s", std::nullopt, {}}), outlet,
                       Log::standard_error(LogLevel::off));
  }
  void send(json message) {
    message["jsonrpc"] = "2.0";
    connection->receive(message.dump());
  }
  void request(json id, const std::string& method, json params = json::object()) {
    send({{"id", std::move(id)}, {"method", method}, {"params", std::move(params)}});
  }
  void initialize(json capabilities = json::object(), const json& version = "2025-11-25") {
    request("init", "initialize",
            {{"protocolVersion", version}, {"capabilities", std::move(capabilities)}});
    send({{"method", "notifications/initialized"}});
  }
  void call(json id, json more = json::object()) {
    json params{{"name", "bash"}, {"arguments", {{"command", "x"}}}};
    params.update(more);
    request(std::move(id), "tools/call", params);
  }
  void modern_call(json id, json more = json::object(), json capabilities = json::object()) {
    json meta = kModernMeta;
    meta["io.modelcontextprotocol/clientCapabilities"] = std::move(capabilities);
    more["_meta"] = meta;
    call(std::move(id), std::move(more));
  }
  void turns() { run_for(loop, 1ms); }
  // The answers to `id`, results and errors.
  std::vector<json> answers(const json& id) const {
    std::vector<json> found;
    for (const auto& message : outlet.sent)
      if (!message.contains("method") && message["id"] == id) found.push_back(message);
    return found;
  }
  json answer(const json& id) const {
    auto found = answers(id);
    REQUIRE(found.size() == 1);
    return found[0];
  }
  int error_code(const json& id) const { return answer(id)["error"]["code"]; }
  std::vector<json> said(const std::string& method) const {
    std::vector<json> found;
    for (const auto& message : outlet.sent)
      if (message.value("method", "") == method) found.push_back(message);
    return found;
  }

  Loop loop;
  FakeOutlet outlet;
  std::shared_ptr<FakeTool> tool = std::make_shared<FakeTool>(loop);
  std::optional<mcp::Connection> connection;
};

}  // namespace

// ---- opening ----------------------------------------------------------------------------------

TEST_CASE("mcp: a known version is answered with itself and an unknown one with the latest") {
  struct Row {
    json wanted;
    std::string given;
  };
  for (const auto& row : {Row{"2025-11-25", "2025-11-25"}, Row{"2025-06-18", "2025-06-18"},
                          Row{"2025-03-26", "2025-03-26"}, Row{"2024-11-05", "2024-11-05"},
                          Row{"2099-01-01", "2025-11-25"}, Row{"2026-07-28", "2025-11-25"},
                          Row{7, "2025-11-25"}, Row{nullptr, "2025-11-25"}}) {
    Rig rig;
    rig.initialize(json::object(), row.wanted);
    auto result = rig.answer("init")["result"];
    CHECK(result["protocolVersion"] == row.given);
    CHECK(result["serverInfo"]["name"] == "stockade");
    CHECK(result["serverInfo"]["version"] == "1.2");
    CHECK(result["capabilities"].contains("tools"));
    CHECK(result["capabilities"].contains("logging"));
  }
  Rig rig;
  rig.request(1, "initialize");
  CHECK(rig.answer(1)["result"]["protocolVersion"] == "2025-11-25");
  rig.request(2, "initialize");
  CHECK(rig.error_code(2) == -32600);
}

TEST_CASE("mcp: before it is initialized a client gets a ping and else an error that tells how") {
  Rig rig;
  rig.request(1, "ping");
  CHECK(rig.answer(1)["result"] == json::object());
  rig.call(2);
  CHECK(rig.error_code(2) == -32602);
  CHECK_THAT(rig.answer(2)["error"]["message"].get<std::string>(),
             ContainsSubstring("initialize") && ContainsSubstring("_meta"));
  CHECK(rig.tool->seen.empty());
}

TEST_CASE("mcp: a client of the current revision needs no initialize") {
  Rig rig;
  rig.request(1, "server/discover", {{"_meta", kModernMeta}});
  auto result = rig.answer(1)["result"];
  CHECK(result["resultType"] == "complete");
  CHECK(result["supportedVersions"][0] == "2026-07-28");
  CHECK(result["supportedVersions"][1] == "2025-11-25");
  CHECK(result["capabilities"].contains("tools"));
  CHECK(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "stockade");
  CHECK(result.contains("ttlMs"));
  CHECK(result.contains("cacheScope"));

  rig.request(2, "tools/list", {{"_meta", kModernMeta}});
  CHECK(rig.answer(2)["result"]["tools"].size() == 1);
  CHECK(rig.answer(2)["result"]["resultType"] == "complete");
  CHECK(rig.answer(2)["result"].contains("ttlMs"));

  rig.modern_call(3);
  rig.turns();
  CHECK(rig.answer(3)["result"]["resultType"] == "complete");
  CHECK(rig.answer(3)["result"]["isError"] == false);

  // What this revision has removed.
  for (const char* method : {"ping", "logging/setLevel", "resources/list"}) {
    rig.request(method, method, {{"_meta", kModernMeta}});
    CHECK(rig.error_code(method) == -32601);
  }
}

TEST_CASE("mcp: a version of the current era that is not supported is told which are") {
  Rig rig;
  json meta = kModernMeta;
  meta["io.modelcontextprotocol/protocolVersion"] = "2099-01-01";
  rig.request(1, "tools/list", {{"_meta", meta}});
  auto error = rig.answer(1)["error"];
  CHECK(error["code"] == -32022);
  CHECK(error["data"]["requested"] == "2099-01-01");
  CHECK(error["data"]["supported"][0] == "2026-07-28");

  meta = kModernMeta;
  meta.erase("io.modelcontextprotocol/clientCapabilities");
  rig.request(2, "tools/list", {{"_meta", meta}});
  CHECK(rig.error_code(2) == -32602);
  meta = kModernMeta;
  meta["io.modelcontextprotocol/protocolVersion"] = 7;
  rig.request(3, "tools/list", {{"_meta", meta}});
  CHECK(rig.error_code(3) == -32602);
}

// ---- requests ---------------------------------------------------------------------------------

TEST_CASE("mcp: tools are listed with what describes them") {
  Rig rig;
  rig.initialize();
  rig.request(1, "tools/list");
  CHECK(rig.answer(1)["result"] == json{{"tools",
                                         {{{"name", "bash"},
                                           {"title", "Bash"},
                                           {"description", "runs"},
                                           {"inputSchema", {{"type", "object"}}},
                                           {"outputSchema", {{"type", "object"}}},
                                           {"annotations", {{"x", true}}}}}}});
  rig.request(2, "tools/list", {{"cursor", "x"}});
  CHECK(rig.error_code(2) == -32602);
}

TEST_CASE("mcp: a call reaches its tool and comes back as text and as data") {
  Rig rig;
  rig.initialize();
  rig.call(5);
  rig.turns();
  CHECK(rig.tool->seen == std::vector<json>{{{"command", "x"}}});
  CHECK(rig.answer(5)["result"] == json{{"content", {{{"type", "text"}, {"text", "text"}}}},
                                        {"structuredContent", {{"outcome", "ok"}}},
                                        {"isError", false}});
  CHECK(rig.connection->calls() == 0);
}

TEST_CASE("mcp: a tool that fails is an error result and one that is not there an error") {
  Rig rig;
  rig.initialize();
  rig.tool->throws = true;
  rig.call(1);
  rig.turns();
  CHECK(rig.answer(1)["result"]["isError"] == true);
  CHECK(rig.answer(1)["result"]["content"][0]["text"] == "Error: no");
  rig.request(2, "tools/call", {{"name", "bsh"}});
  CHECK(rig.error_code(2) == -32602);
  rig.request(3, "tools/call", {{"arguments", json::object()}});
  CHECK(rig.error_code(3) == -32602);
  rig.request(4, "no/such/method");
  CHECK(rig.error_code(4) == -32601);
}

TEST_CASE("mcp: what is no message is answered, what looks like a notification never") {
  Rig rig;
  rig.connection->receive("nonsense");
  rig.connection->receive("[]");
  rig.connection->receive(R"({"method":"x"})");
  rig.connection->receive(R"({"jsonrpc":"2.0","method":"x"})");
  rig.connection->receive(R"({"jsonrpc":"2.0","id":"stockade-1","result":{}})");
  rig.connection->receive_overlong(10);
  REQUIRE(rig.outlet.sent.size() == 3);
  CHECK(rig.outlet.sent[0]["error"]["code"] == -32700);
  CHECK(rig.outlet.sent[0]["id"].is_null());
  CHECK(rig.outlet.sent[1]["error"]["code"] == -32600);
  CHECK(rig.outlet.sent[2]["error"]["code"] == -32700);
}

TEST_CASE("mcp: a call that runs holds nothing else up") {
  Rig rig;
  rig.initialize();
  rig.tool->waits = true;
  rig.call(1);
  rig.turns();
  rig.request(2, "ping");
  rig.request(3, "tools/list");
  rig.tool->waits = false;
  rig.call(4);
  rig.turns();
  CHECK(rig.answers(1).empty());
  for (int id : {2, 3, 4}) CHECK(rig.answers(id).size() == 1);
  rig.tool->open[0].settle();
  rig.turns();
  CHECK(rig.answer(1)["result"]["isError"] == false);
}

TEST_CASE("mcp: an id in flight cannot be used again and the first is not harmed") {
  Rig rig;
  rig.initialize();
  rig.tool->waits = true;
  rig.call(1);
  rig.turns();
  rig.request(1, "ping");
  CHECK(rig.error_code(1) == -32600);
  rig.request("1", "ping");  // another id
  CHECK(rig.answer("1").contains("result"));
  rig.tool->open[0].settle();
  rig.turns();
  auto answers = rig.answers(1);
  REQUIRE(answers.size() == 2);
  CHECK(answers[1]["result"]["isError"] == false);
  rig.request(1, "ping");  // free again
  CHECK(rig.answers(1).size() == 3);
}

TEST_CASE("mcp: calls beyond the limit are told to wait") {
  mcp::ConnectionOptions options;
  options.max_calls = 2;
  Rig rig(options);
  rig.initialize();
  rig.tool->waits = true;
  for (int id : {1, 2, 3}) rig.call(id);
  rig.turns();
  CHECK(rig.answer(3)["result"]["isError"] == true);
  CHECK(rig.answer(3)["result"]["structuredContent"]["error"]["code"] == "BUSY");
  rig.tool->open[0].settle();
  rig.turns();
  rig.call(4);
  rig.turns();
  CHECK(rig.tool->seen.size() == 3);
}

// ---- cancellation -----------------------------------------------------------------------------

TEST_CASE("mcp: a cancelled call is aborted once and never answered") {
  Rig rig;
  rig.initialize();
  rig.tool->waits = true;
  rig.call(7);
  rig.turns();
  auto cancel = [&](json id) {
    rig.send({{"method", "notifications/cancelled"}, {"params", {{"requestId", id}}}});
  };
  for (const json& other : {json("7"), json(8), json("init"), json(nullptr), json::array()})
    cancel(other);
  CHECK(rig.tool->aborted == 0);
  cancel(7);
  cancel(7);
  rig.turns();
  CHECK(rig.tool->aborted == 1);
  CHECK(rig.answers(7).empty());
  CHECK(rig.connection->calls() == 0);
  cancel(7);  // over
  rig.send({{"method", "notifications/cancelled"}});
  rig.request(9, "ping");
  CHECK(rig.answers(9).size() == 1);
}

TEST_CASE("mcp: a cancellation that comes too late changes nothing") {
  Rig rig;
  rig.initialize();
  rig.tool->waits = true;
  rig.call(7);
  rig.turns();
  rig.tool->open[0].settle();
  rig.turns();
  rig.send({{"method", "notifications/cancelled"}, {"params", {{"requestId", 7}}}});
  rig.turns();
  CHECK(rig.answers(7).size() == 1);
  CHECK(rig.tool->aborted == 0);
}

TEST_CASE("mcp: when the client goes every call is aborted and nothing is said any more") {
  Rig rig;
  rig.initialize();
  rig.tool->waits = true;
  rig.call(1);
  rig.call(2);
  rig.turns();
  auto before = rig.outlet.sent.size();
  rig.connection->close("gone");
  bool idle = false;
  wait_until(rig.loop, [&] { return (idle = rig.connection->idle().settled()); });
  CHECK(idle);
  CHECK(rig.tool->aborted == 2);
  CHECK(rig.outlet.sent.size() == before);
}

// ---- progress and logging ---------------------------------------------------------------------

TEST_CASE("mcp: progress is told to who asks for it, rising and not too often") {
  mcp::ConnectionOptions options;
  options.progress_interval = 50ms;
  Rig rig(options);
  rig.initialize();
  rig.tool->waits = true;
  rig.call(1, {{"_meta", {{"progressToken", "p"}}}});
  rig.turns();
  REQUIRE(rig.tool->on_output);
  for (int i = 0; i < 100; ++i) rig.tool->on_output("line " + std::to_string(i) + "\n");
  CHECK(rig.said("notifications/progress").size() == 1);
  REQUIRE(wait_until(rig.loop, [&] { return rig.said("notifications/progress").size() == 2; }));
  run_for(rig.loop, 200ms);  // nothing new, nothing to tell
  auto told = rig.said("notifications/progress");
  REQUIRE(told.size() == 2);
  CHECK(told[0]["params"] == json{{"progressToken", "p"}, {"progress", 7}, {"message", "line 0"}});
  CHECK(told[1]["params"]["progress"] > told[0]["params"]["progress"]);
  CHECK(told[1]["params"]["message"] == "line 99");

  // A client that does not read gets none, and catches up.
  rig.outlet.full = true;
  rig.tool->on_output("more\n");
  run_for(rig.loop, 120ms);
  CHECK(rig.said("notifications/progress").size() == 2);
  rig.outlet.full = false;
  CHECK(wait_until(rig.loop, [&] { return rig.said("notifications/progress").size() == 3; }));

  rig.tool->open[0].settle();
  rig.turns();
  run_for(rig.loop, 120ms);
  CHECK(rig.outlet.sent.back()["id"] == 1);  // no progress after the result

  rig.call(2);
  rig.turns();
  CHECK_FALSE(rig.tool->on_output);
}

TEST_CASE("mcp: a denial is a log message for who wants to read it") {
  Rig rig;
  rig.initialize();
  rig.tool->structured = {{"outcome", "denied"}, {"sandbox", {{"evidence", "x"}}}};
  rig.call(1);
  rig.turns();
  auto logged = rig.said("notifications/message");
  REQUIRE(logged.size() == 1);
  CHECK(logged[0]["params"]["level"] == "warning");
  CHECK(logged[0]["params"]["data"]["sandbox"]["evidence"] == "x");

  rig.request(2, "logging/setLevel", {{"level", "error"}});
  CHECK(rig.answer(2)["result"] == json::object());
  rig.call(3);
  rig.turns();
  CHECK(rig.said("notifications/message").size() == 1);
  rig.request(4, "logging/setLevel", {{"level", "loud"}});
  CHECK(rig.error_code(4) == -32602);

  // The current revision asks for it in each request.
  rig.modern_call(5);
  rig.turns();
  CHECK(rig.said("notifications/message").size() == 1);
  json meta = kModernMeta;
  meta["io.modelcontextprotocol/logLevel"] = "debug";
  rig.call(6, {{"_meta", meta}});
  rig.turns();
  CHECK(rig.said("notifications/message").size() == 2);
}

// ---- approvals --------------------------------------------------------------------------------

TEST_CASE("mcp: only an accepted form that says yes approves") {
  using mcp::read_answer;
  CHECK(read_answer({{"action", "accept"}, {"content", {{"approve", true}}}}) ==
        EscalationOutcome::approved);
  CHECK(read_answer({{"action", "accept"}, {"content", {{"approve", false}}}}) ==
        EscalationOutcome::rejected);
  CHECK(read_answer({{"action", "accept"}, {"content", {{"approve", "true"}}}}) ==
        EscalationOutcome::rejected);
  CHECK(read_answer({{"action", "accept"}}) == EscalationOutcome::rejected);
  CHECK(read_answer({{"action", "decline"}}) == EscalationOutcome::rejected);
  CHECK(read_answer({{"action", "cancel"}}) == EscalationOutcome::cancelled);
  for (const json& other : {json{{"action", "yes"}}, json::object(), json(true), json(nullptr)})
    CHECK(read_answer(other) == EscalationOutcome::unavailable);
}

TEST_CASE("mcp: the form shows the command and nothing in it moves the cursor") {
  Escalation escalation{
      SandboxMode::read_only, SandboxMode::workspace_write, "/w", "bash", "1", "why \x1b[2J",
      "rm \x1b[1A -rf\r"};
  auto form = mcp::approval_form(escalation, true);
  CHECK(form["mode"] == "form");
  auto message = form["message"].get<std::string>();
  CHECK_THAT(message, ContainsSubstring("rm \\x1b[1A -rf\\x0d") && ContainsSubstring("/w") &&
                          ContainsSubstring("workspace-write") && !ContainsSubstring("\x1b"));
  CHECK_FALSE(mcp::approval_form(escalation, false).contains("mode"));
  escalation.detail = std::string(5000, 'x');
  CHECK_THAT(mcp::approval_form(escalation, true)["message"].get<std::string>(),
             ContainsSubstring("3000 bytes more"));
}

TEST_CASE("mcp: a client that cannot be asked is not asked") {
  for (const json& capabilities :
       {json::object(), json{{"elicitation", {{"url", json::object()}}}}, json{{"sampling", 1}}}) {
    Rig rig;
    rig.initialize(capabilities);
    rig.tool->asks = true;
    rig.call(1);
    rig.turns();
    CHECK(rig.said("elicitation/create").empty());
    CHECK(rig.answer(1)["result"]["isError"] == true);
  }
}

TEST_CASE("mcp: a client up to 2025-11-25 is asked by a request of the server's") {
  Rig rig;
  rig.initialize({{"elicitation", json::object()}});
  rig.tool->asks = true;
  rig.call(1);
  rig.turns();
  auto asked = rig.said("elicitation/create");
  REQUIRE(asked.size() == 1);
  CHECK_THAT(asked[0]["params"]["message"].get<std::string>(), ContainsSubstring("make"));
  rig.send({{"id", "somebody else"}, {"result", {{"action", "accept"}}}});
  rig.turns();
  CHECK(rig.answers(1).empty());
  rig.send({{"id", asked[0]["id"]},
            {"result", {{"action", "accept"}, {"content", {{"approve", true}}}}}});
  rig.turns();
  CHECK(rig.tool->outcome == EscalationOutcome::approved);
  CHECK(rig.answer(1)["result"]["isError"] == false);

  rig.call(2);
  rig.turns();
  rig.send({{"id", rig.said("elicitation/create")[1]["id"]},
            {"error", {{"code", -32603}, {"message", "no"}}}});
  rig.turns();
  CHECK(rig.tool->outcome == EscalationOutcome::unavailable);
}

TEST_CASE("mcp: a question that nobody answers ends unanswered") {
  mcp::ConnectionOptions options;
  options.approval_timeout = 30ms;
  {
    Rig rig(options);
    rig.initialize({{"elicitation", {{"form", json::object()}}}});
    rig.tool->asks = true;
    rig.call(1);
    CHECK(wait_until(rig.loop, [&] { return !rig.answers(1).empty(); }));
    CHECK(rig.tool->outcome == EscalationOutcome::unavailable);
    CHECK(rig.said("notifications/cancelled").size() == 1);
  }
  Rig rig(options);
  rig.tool->asks = true;
  rig.modern_call(1, json::object(), {{"elicitation", json::object()}});
  CHECK(wait_until(rig.loop, [&] { return rig.connection->calls() == 0 && rig.tool->outcome; }));
  CHECK(rig.tool->outcome == EscalationOutcome::unavailable);
  CHECK(rig.answers(1).size() == 1);  // the interim result
}

TEST_CASE("mcp: a client of the current revision brings the answer with the call made anew") {
  Rig rig;
  rig.tool->asks = true;
  json elicits{{"elicitation", json::object()}};
  rig.modern_call(1, json::object(), elicits);
  rig.turns();
  auto interim = rig.answer(1)["result"];
  CHECK(interim["resultType"] == "input_required");
  CHECK(interim["inputRequests"]["approval"]["method"] == "elicitation/create");
  CHECK(interim["inputRequests"]["approval"]["params"]["mode"] == "form");
  auto state = interim["requestState"].get<std::string>();
  CHECK(state.size() >= 32);

  json yes{{"approval", {{"action", "accept"}, {"content", {{"approve", true}}}}}};
  // Not of this call.
  rig.modern_call(
      2,
      {{"requestState", state}, {"inputResponses", yes}, {"arguments", {{"command", "rm -rf /"}}}},
      elicits);
  CHECK(rig.error_code(2) == -32602);
  rig.modern_call(3, {{"requestState", "guessed"}, {"inputResponses", yes}}, elicits);
  CHECK(rig.error_code(3) == -32602);
  // Without the answer it is asked again.
  rig.modern_call(4, {{"requestState", state}}, elicits);
  CHECK(rig.answer(4)["result"]["resultType"] == "input_required");
  CHECK_FALSE(rig.tool->outcome);

  rig.modern_call(5, {{"requestState", state}, {"inputResponses", yes}}, elicits);
  rig.turns();
  CHECK(rig.tool->outcome == EscalationOutcome::approved);
  CHECK(rig.answer(5)["result"]["resultType"] == "complete");
  CHECK(rig.tool->seen.size() == 1);  // one call, whatever the number of requests
  // Once.
  rig.modern_call(6, {{"requestState", state}, {"inputResponses", yes}}, elicits);
  CHECK(rig.error_code(6) == -32602);
  CHECK(rig.connection->calls() == 0);
}

// ---- the stream -------------------------------------------------------------------------------

namespace {

class FakeChannel final : public McpChannel {
 public:
  explicit FakeChannel(Loop& loop) : loop_(loop), arrived_(loop) {}
  Task<std::string> read(AbortSignal abort) override {
    auto stop = abort.on_abort([this] { arrived_.settle(); });
    if (input.empty() && !ended) {
      Completion<> arrived = arrived_;
      co_await arrived;
    }
    arrived_ = Completion<>(loop_);
    ++reads;
    if (input.empty() || abort.aborted()) co_return std::string();
    std::string bytes = std::move(input.front());
    input.pop_front();
    co_return bytes;
  }
  void write(std::string_view bytes) override { output += bytes; }
  bool saturated() const override { return full; }
  bool broken() const override { return false; }
  Completion<> drained() const override { return *drain; }

  void push(std::string bytes) {
    input.push_back(std::move(bytes));
    arrived_.settle();
  }
  void end() {
    ended = true;
    arrived_.settle();
  }

  std::deque<std::string> input;
  std::string output;
  bool ended = false;
  bool full = false;
  int reads = 0;
  std::optional<Completion<>> drain;

 private:
  Loop& loop_;
  Completion<> arrived_;
};

Task<bool> ended(Task<> task) {
  co_await task;
  co_return true;
}

struct StreamRig {
  explicit StreamRig(std::chrono::milliseconds linger = 10ms) {
    StreamServerOptions options;
    options.linger = linger;
    mcp::ToolBox tools{[this] { return std::vector<std::shared_ptr<Tool>>{tool}; },
                       [this](std::string_view) { return tool; }};
    server.emplace(loop, tools, options, Log::standard_error(LogLevel::off));
  }
  Task<> serve() { return server->serve(channel, nullptr, abort.signal()); }
  const std::string ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
  Loop loop;
  FakeChannel channel{loop};
  std::shared_ptr<FakeTool> tool = std::make_shared<FakeTool>(loop);
  AbortController abort;
  std::optional<McpStreamServer> server;
};

}  // namespace

TEST_CASE("mcp stream: the last message needs no newline and the end is the end") {
  StreamRig rig;
  rig.channel.push(rig.ping.substr(0, 9));
  rig.channel.push(rig.ping.substr(9));
  rig.channel.end();
  CHECK(await_task(rig.loop, ended(rig.serve())));
  CHECK(rig.channel.output == "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
}

TEST_CASE("mcp stream: a client that does not read is not read from") {
  StreamRig rig;
  rig.channel.full = true;
  rig.channel.drain.emplace(rig.loop);
  rig.channel.push(rig.ping + "\n");
  rig.channel.end();
  TaskScope scope(rig.loop, [](std::exception_ptr) {});
  scope.start(rig.serve());
  run_for(rig.loop, 50ms);
  CHECK(rig.channel.reads == 0);
  rig.channel.full = false;
  rig.channel.drain->settle();
  CHECK(wait_until(rig.loop, [&] { return !rig.channel.output.empty() && scope.size() == 0; }));
}

TEST_CASE("mcp stream: at the end what still runs is given a moment and then ended") {
  const std::string call =
      R"({"jsonrpc":"2.0","id":1,"method":"initialize"})"
      "\n"
      R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"bash"}})"
      "\n";
  {
    StreamRig rig(60s);
    rig.channel.push(call);
    rig.channel.end();
    CHECK(await_task(rig.loop, ended(rig.serve())));
    CHECK_THAT(rig.channel.output, ContainsSubstring("\"id\":2"));
  }
  StreamRig rig(10ms);
  rig.tool->waits = true;
  rig.channel.push(call);
  rig.channel.end();
  CHECK(await_task(rig.loop, ended(rig.serve())));
  CHECK(rig.tool->aborted == 1);
  CHECK_THAT(rig.channel.output, !ContainsSubstring("\"id\":2"));
}

TEST_CASE("mcp stream: an abort ends the server while it waits for its client") {
  StreamRig rig;
  rig.loop.post([&] { rig.loop.post([&] { rig.abort.abort(); }); });
  CHECK(await_task(rig.loop, ended(rig.serve())));
}
