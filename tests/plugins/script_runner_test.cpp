// SPDX-License-Identifier: MIT
#include "plugins/script/script_runner.hpp"

#include <deque>
#include <nlohmann/json.hpp>

#include "framework/error.hpp"
#include "plugins/script/script_line.hpp"
#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"

using namespace stockade;
using nlohmann::json;
using stockade::test::await_task;

namespace {

class FakeSource final : public LineSource {
 public:
  explicit FakeSource(std::deque<std::string> lines) : lines_(std::move(lines)) {}
  Task<std::optional<std::string>> next_line(AbortSignal) override {
    if (lines_.empty()) co_return std::nullopt;
    std::string line = std::move(lines_.front());
    lines_.pop_front();
    ++read;
    co_return line;
  }
  int read = 0;

 private:
  std::deque<std::string> lines_;
};

class FakeSink final : public ResultSink {
 public:
  Task<> on_result(const json& call, const nlohmann::ordered_json& result) override {
    calls.push_back(call);
    results.push_back(result);
    if (after) after();
    co_return;
  }
  void on_comment(const std::string& line) override { comments.push_back(line); }
  std::vector<std::string> comments;
  std::vector<json> calls;
  std::vector<nlohmann::ordered_json> results;
  std::function<void()> after;
};

class FakeTool final : public Tool {
 public:
  ToolDescription describe() const override { return {}; }
  Task<ToolResult> call(ToolCall call) override {
    seen.push_back(call.arguments);
    ToolResult result{"text of " + call.arguments.dump(), {{"outcome", "ok"}}, fails};
    co_return result;
  }
  std::vector<json> seen;
  bool fails = false;
};

struct Run {
  explicit Run(std::deque<std::string> lines, AbortSignal abort = {},
               std::function<void()> after_each = {}, bool fails = false)
      : source(std::move(lines)) {
    tool->fails = fails;
    sink.after = std::move(after_each);
    Loop loop;
    LineScriptRunner runner(loop, [this](std::string_view name) -> std::shared_ptr<Tool> {
      return name == "bash" ? tool : nullptr;
    });
    summary = await_task(loop, runner.run(source, sink, {}, std::move(abort)));
  }
  const nlohmann::ordered_json& only() const {
    REQUIRE(sink.results.size() == 1);
    return sink.results[0];
  }
  std::string text() const { return only()["content"][0]["text"]; }

  std::shared_ptr<FakeTool> tool = std::make_shared<FakeTool>();
  FakeSource source;
  FakeSink sink;
  ScriptSummary summary;
};

}  // namespace

TEST_CASE("script: a call reaches its tool and its result has the documented shape") {
  Run run({R"({"id": "a", "tool": "bash", "arguments": {"command": "x"}})"});
  CHECK(run.tool->seen == std::vector<json>{{{"command", "x"}}});
  CHECK(run.only().dump() ==
        R"({"id":"a","content":[{"type":"text","text":"text of {\"command\":\"x\"}"}],)"
        R"("structuredContent":{"outcome":"ok"},"isError":false})");
  CHECK(run.sink.calls[0]["tool"] == "bash");
  CHECK(run.summary.calls == 1);
  CHECK(run.summary.errors == 0);
}

TEST_CASE("script: calls are made one after the other in their order") {
  Run run({R"({"id": 1, "tool": "bash", "arguments": {"n": 1}})",
           R"({"id": 2, "tool": "bash", "arguments": {"n": 2}})",
           R"({"id": 3, "tool": "bash", "arguments": {"n": 3}})"});
  REQUIRE(run.sink.results.size() == 3);
  for (int i = 0; i < 3; ++i) {
    CHECK(run.sink.results[static_cast<std::size_t>(i)]["id"] == i + 1);
    CHECK(run.tool->seen[static_cast<std::size_t>(i)]["n"] == i + 1);
  }
}

TEST_CASE("script: arguments may be absent and are then empty") {
  Run run({R"({"tool": "bash"})"});
  CHECK(run.tool->seen == std::vector<json>{json::object()});
  CHECK(run.only()["id"].is_null());
}

TEST_CASE("script: an id is text or a number or nothing and comes back as it is") {
  for (const char* id : {"\"a\"", "\"\"", "0", "-7", "1.5", "18446744073709551615", "null"}) {
    Run run({std::string("{\"id\": ") + id + ", \"tool\": \"bash\"}"});
    CHECK(run.only()["id"].dump() == id);
    CHECK(run.only()["isError"] == false);
  }
  for (const char* id : {"true", "[1]", "{}"}) {
    Run run({std::string("{\"id\": ") + id + ", \"tool\": \"bash\"}"});
    CHECK(run.only()["id"].is_null());
    CHECK(run.only()["isError"] == true);
    CHECK_THAT(run.text(), ContainsSubstring("$.id: expected a string or a number"));
    CHECK(run.tool->seen.empty());
  }
}

TEST_CASE("script: blank lines are passed over and counted as lines") {
  Run run({"", "   ", "\t\r", R"({"id": 1, "tool": "bash"})", "", "nonsense"});
  REQUIRE(run.sink.results.size() == 2);
  CHECK_FALSE(run.sink.results[0].contains("line"));
  CHECK(run.sink.results[1]["line"] == 6);
  CHECK(run.summary.calls == 2);
  CHECK(run.summary.errors == 1);
}

TEST_CASE("script: a carriage return before the end of a line is no part of it") {
  Run run({"{\"id\": 1, \"tool\": \"bash\"}\r"});
  CHECK(run.only()["isError"] == false);
}

TEST_CASE("script: a line that is no JSON is an error with its number and the rest runs") {
  for (const char* bad : {"nonsense", "{", "{\"tool\": \"bash\"} x", "{\"tool\": \"bash\",}",
                          "\xEF\xBB\xBF{\"tool\": \"bash\"}", "{\"tool\": \"\xff\"}"}) {
    CAPTURE(bad);
    Run run({bad, R"({"id": 2, "tool": "bash"})"});
    REQUIRE(run.sink.results.size() == 2);
    const auto& error = run.sink.results[0];
    CHECK(error["isError"] == true);
    CHECK(error["id"].is_null());
    CHECK(error["line"] == 1);
    CHECK(error["structuredContent"]["error"]["code"] == "SCRIPT_LINE_INVALID");
    CHECK_THAT(error["content"][0]["text"].get<std::string>(),
               Catch::Matchers::StartsWith("Error: line 1: "));
    CHECK(run.sink.calls[0].is_null());
    CHECK(run.sink.results[1]["id"] == 2);
    CHECK(run.summary.errors == 1);
  }
}

TEST_CASE("script: a line that is JSON but no object is an error") {
  for (const char* bad : {"5", "[]", "\"bash\"", "null", "true"}) {
    Run run({bad});
    CHECK(run.only()["isError"] == true);
    CHECK_THAT(run.text(), ContainsSubstring("expected an object"));
  }
}

TEST_CASE("script: an unknown key is refused with the nearest and keeps its id") {
  Run run({R"({"id": 7, "tool": "bash", "argument": {}})"});
  CHECK(run.only()["id"] == 7);
  CHECK(run.only()["structuredContent"]["error"]["code"] == "SCRIPT_LINE_INVALID");
  CHECK_THAT(run.text(),
             ContainsSubstring("$.argument: unknown key (did you mean \"arguments\"?)"));
  CHECK(run.tool->seen.empty());
}

TEST_CASE("script: a key that stands twice is refused") {
  Run run({R"({"tool": "bash", "tool": "bash"})"});
  CHECK_THAT(run.text(), ContainsSubstring("stands twice"));
  CHECK(run.tool->seen.empty());
}

TEST_CASE("script: a line without a tool is told what is missing") {
  for (const char* line : {"{}", R"({"arguments": {}})", R"({"tool": ""})"}) {
    Run run({line});
    CHECK_THAT(run.text(), ContainsSubstring("$.tool: expected the name of a tool"));
  }
  Run run({R"({"tool": 5})"});
  CHECK_THAT(run.text(), ContainsSubstring("$.tool: expected a string, found the number 5"));
}

TEST_CASE("script: a tool that is not there has a code of its own") {
  Run run({R"({"id": "x", "tool": "bahs"})"});
  CHECK(run.only()["id"] == "x");
  CHECK(run.only()["isError"] == true);
  CHECK(run.only()["line"] == 1);
  CHECK(run.only()["structuredContent"]["error"]["code"] == "TOOL_UNKNOWN");
  CHECK_THAT(run.text(), ContainsSubstring("there is no tool \"bahs\" (did you mean \"bash\"?)"));
}

TEST_CASE("script: a line that is too long is one error and the next runs") {
  std::string longest = R"({"tool": "bash", "arguments": {"c": ")";
  longest.resize(kMaxScriptLine - 3, 'x');
  longest += "\"}}";
  Run run({longest, longest + " ", R"({"id": 3, "tool": "bash"})"});
  REQUIRE(run.sink.results.size() == 3);
  CHECK(run.sink.results[0]["isError"] == false);
  CHECK(run.sink.results[1]["isError"] == true);
  CHECK_THAT(run.sink.results[1]["content"][0]["text"].get<std::string>(),
             ContainsSubstring("line 2: it is longer than 1048576 bytes"));
  CHECK(run.sink.results[2]["id"] == 3);
}

TEST_CASE("script: an error of a tool counts as one") {
  Run run({R"({"id": 1, "tool": "bash"})"}, {}, {}, true);
  CHECK(run.only()["isError"] == true);
  CHECK_FALSE(run.only().contains("line"));  // the line itself is not at fault
  CHECK(run.summary.errors == 1);
}

TEST_CASE("script: an empty script has no result") {
  Run run({});
  CHECK(run.summary.calls == 0);
  CHECK(run.sink.results.empty());
}

TEST_CASE("script: an abort ends the script after the call in progress") {
  AbortController controller;
  Run run({R"({"id": 1, "tool": "bash"})", R"({"id": 2, "tool": "bash"})"}, controller.signal(),
          [&] { controller.abort(); });
  CHECK(run.only()["id"] == 1);
  CHECK(run.source.read == 1);

  Run never({R"({"id": 1, "tool": "bash"})"}, controller.signal());
  CHECK(never.source.read == 0);
  CHECK(never.summary.calls == 0);
}

// ---- parallel lines ---------------------------------------------------------------------------

namespace {

// Notes what runs beside what; a call with {"ms": n} takes that long.
class SlowTool final : public Tool {
 public:
  explicit SlowTool(Loop& loop) : loop_(loop) {}
  ToolDescription describe() const override { return {}; }
  Task<ToolResult> call(ToolCall call) override {
    most = std::max(most, ++running);
    if (call.session) sessions.push_back(call.session->session().id);
    auto pause = sleep(loop_, std::chrono::milliseconds(call.arguments.value("ms", 1)));
    co_await pause;
    --running;
    ToolResult result{call.arguments.dump(), {{"outcome", "ok"}}, false};
    co_return result;
  }
  int running = 0;
  int most = 0;
  std::vector<std::string> sessions;

 private:
  Loop& loop_;
};

struct SlowRun {
  explicit SlowRun(std::deque<std::string> lines, ScriptOptions options = {})
      : source(std::move(lines)) {
    LineScriptRunner runner(loop, [this](std::string_view) { return tool; });
    summary = await_task(loop, runner.run(source, sink, std::move(options), {}));
    for (const auto& result : sink.results) order += result["id"].get<std::string>();
  }
  Loop loop;
  std::shared_ptr<SlowTool> tool = std::make_shared<SlowTool>(loop);
  FakeSource source;
  FakeSink sink;
  ScriptSummary summary;
  std::string order;
};

std::string slow(const std::string& id, int ms, bool parallel = true) {
  return json{{"id", id}, {"tool", "bash"}, {"arguments", {{"ms", ms}}}, {"parallel", parallel}}
      .dump();
}

}  // namespace

TEST_CASE("script: parallel neighbours run at once and their results keep the order") {
  SlowRun run({slow("a", 80), slow("b", 40), slow("c", 1)});
  CHECK(run.tool->most == 3);
  CHECK(run.order == "abc");
  CHECK(run.summary.calls == 3);
}

TEST_CASE("script: results as they come when that is asked for") {
  ScriptOptions options;
  options.as_they_come = true;
  CHECK(SlowRun({slow("a", 300), slow("b", 1)}, options).order == "ba");
}

TEST_CASE("script: a line that is not parallel waits for those before it") {
  SlowRun run({slow("a", 30, false), slow("b", 1, false), slow("c", 30), slow("d", 1, false)});
  CHECK(run.tool->most == 1);
  CHECK(run.order == "abcd");
}

TEST_CASE("script: so many calls run at once and no more") {
  ScriptOptions options;
  options.max_parallel = 2;
  std::deque<std::string> lines;
  for (int i = 0; i < 12; ++i) lines.push_back(slow("x", 5));
  SlowRun run(lines, options);
  CHECK(run.tool->most == 2);
  CHECK(run.summary.calls == 12);
}

TEST_CASE("script: a bad line between parallel ones keeps its place") {
  Run run({R"({"id": "a", "tool": "bash", "parallel": true})", "nonsense",
           R"({"id": "b", "tool": "bash", "parallel": true})"});
  REQUIRE(run.sink.results.size() == 3);
  CHECK(run.sink.results[0]["id"] == "a");
  CHECK(run.sink.results[1]["line"] == 2);
  CHECK(run.sink.results[2]["id"] == "b");
}

TEST_CASE("script: a comment is no call and keeps its place") {
  Run run({"# one", R"({"id": "a", "tool": "bash"})", "  # two", "nonsense"});
  CHECK(run.sink.comments == std::vector<std::string>{"# one", "  # two"});
  REQUIRE(run.sink.results.size() == 2);
  CHECK(run.sink.results[1]["line"] == 4);
  CHECK(run.summary.calls == 2);
}

// ---- sessions ---------------------------------------------------------------------------------

TEST_CASE("script: a line runs in the session that it names") {
  ScriptOptions options;
  options.session = [](const std::string& name) -> std::shared_ptr<SessionLog> {
    if (name == "bad") throw Error("SESSION_INVALID", "no such session");
    return std::make_shared<MemorySession>(Session{"s" + name, std::nullopt, {}});
  };
  SlowRun run({R"({"id":"a","tool":"bash"})", R"({"id":"b","tool":"bash","session":"x"})",
               R"({"id":"c","tool":"bash","session":"bad"})"},
              options);
  CHECK(run.tool->sessions == std::vector<std::string>{"s", "sx"});
  CHECK(run.sink.results[2]["isError"] == true);
  CHECK(run.sink.results[2]["structuredContent"]["error"]["code"] == "SESSION_INVALID");
}

// ---- expectations -----------------------------------------------------------------------------

TEST_CASE("script: what a line expects is compared with what came") {
  nlohmann::ordered_json result{
      {"id", 1},
      {"content", {{{"type", "text"}, {"text", "hello world"}}}},
      {"structuredContent",
       {{"outcome", "denied"}, {"exitCode", 1}, {"sandbox", {{"denied", true}}}}},
      {"isError", false}};
  auto wrong = [&](const json& expect) {
    ScriptLine line;
    read_script_line({{"tool", "bash"}, {"expect", expect}}, line);
    std::string text;
    for (const auto& each : mismatches(*line.expect, result)) text += each + ";";
    return text;
  };
  CHECK(wrong({{"outcome", "denied"},
               {"exitCode", 1},
               {"text", "lo wo"},
               {"noText", "bye"},
               {"denied", true}}) == "");
  CHECK(wrong(json::object()) == "");
  CHECK(wrong({{"outcome", "ok"}}) == "outcome: expected \"ok\", got \"denied\";");
  CHECK(wrong({{"exitCode", 0}}) == "exitCode: expected 0, got 1;");
  CHECK(wrong({{"denied", false}}) == "denied: expected false, got true;");
  CHECK(wrong({{"text", "bye"}}) == "text: \"bye\" is not in it;");
  CHECK(wrong({{"noText", "hello"}}) == "text: \"hello\" is in it;");
  CHECK(wrong({{"error", "X"}}) == "error: expected \"X\", got null;");
  result["isError"] = true;
  result["structuredContent"] = {{"error", {{"code", "X"}}}};
  CHECK(wrong({{"error", "X"}}) == "");
  CHECK(wrong({{"text", "hello"}}) == "the call failed: \"X\";");
}

TEST_CASE("script: an expectation is told with its result and counted") {
  Run met({R"({"tool": "bash", "expect": {"outcome": "ok", "text": "text of"}})"});
  CHECK(met.only()["expectation"] == nlohmann::ordered_json{{"met", true}});
  CHECK(met.summary.unmet == 0);
  Run unmet({R"({"tool": "bash", "expect": {"outcome": "denied"}})"});
  CHECK(unmet.only()["expectation"]["met"] == false);
  CHECK(unmet.only()["expectation"]["mismatches"].size() == 1);
  CHECK(unmet.summary.unmet == 1);
  // An error that was expected is none.
  Run error({R"({"tool": "bash", "expect": {"text": "text"}})"}, {}, {}, true);
  CHECK(error.summary.errors == 1);
  Run none({R"({"tool": "bash"})"});
  CHECK_FALSE(none.only().contains("expectation"));
}

TEST_CASE("script: an expectation that is misspelt is a fault of the line") {
  Run outcome({R"({"tool": "bash", "expect": {"outcome": "denyed"}})"});
  CHECK_THAT(outcome.text(), ContainsSubstring("did you mean \"denied\""));
  Run key({R"({"tool": "bash", "expect": {"outcom": "denied"}})"});
  CHECK_THAT(key.text(), ContainsSubstring("did you mean \"outcome\""));
  CHECK(key.tool->seen.empty());
}
