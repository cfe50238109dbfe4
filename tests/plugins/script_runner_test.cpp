// SPDX-License-Identifier: MIT
#include "plugins/script/script_runner.hpp"

#include <deque>
#include <nlohmann/json.hpp>

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
    LineScriptRunner runner([this](std::string_view name) -> std::shared_ptr<Tool> {
      return name == "bash" ? tool : nullptr;
    });
    Loop loop;
    summary = await_task(loop, runner.run(source, sink, nullptr, std::move(abort)));
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
