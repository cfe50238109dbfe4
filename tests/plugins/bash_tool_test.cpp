// SPDX-License-Identifier: MIT
#include "plugins/tool-bash/bash_tool.hpp"

#include <signal.h>

#include "bash-sandbox/executor.hpp"
#include "framework/error.hpp"
#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"

using namespace stockade;
using namespace std::chrono_literals;
using nlohmann::json;
using stockade::test::await_task;

namespace {

// Notes what it is asked for and answers with what it was given.
class FakeShell final : public Shell {
 public:
  BashSpec resolve(const BashRequest& asked) const override {
    request = asked;
    if (resolve_error) throw *resolve_error;
    BashSpec spec;
    spec.command = asked.command;
    spec.policy.mode = SandboxMode::workspace_write;
    return spec;
  }
  Task<BashResult> run(BashSpec, AbortSignal abort, OutputSink*) override {
    ++runs;
    aborted = abort.aborted();
    if (run_error) throw *run_error;
    co_return result;
  }
  std::shared_ptr<BashProcess> start(BashSpec, AbortSignal) override { return nullptr; }
  SandboxMode sandbox_mode() const override { return SandboxMode::read_only; }

  mutable std::optional<BashRequest> request;
  std::optional<Error> resolve_error;
  std::optional<Error> run_error;
  BashResult result;
  int runs = 0;
  bool aborted = false;
};

struct Rig {
  ToolResult call(json arguments, AbortSignal abort = {}) {
    return await_task(loop, tool.call(std::move(arguments), std::move(abort)));
  }
  Loop loop;
  std::shared_ptr<FakeShell> shell = std::make_shared<FakeShell>();
  BashTool tool{shell};
};

BashResult finished(std::string out, std::string err = {}, int code = 0) {
  BashResult result;
  result.outcome = code == 0 ? BashOutcome::ok : BashOutcome::failed;
  result.exit_code = code;
  result.out = {out, false, out.size(), {}, {}};
  result.err = {err, false, err.size(), {}, {}};
  return result;
}

// The text for a real command, unconfined.
std::string text_of(const std::string& command, std::optional<double> timeout_ms = {}) {
  Loop loop;
  auto policies = std::make_shared<SandboxPolicyService>(
      SandboxPolicyConfig{SandboxMode::danger_full_access, "/"});
  BashTool tool(
      std::make_shared<BashExecutor>(loop, BashSandboxConfig{}, policies,
                                     []() -> std::shared_ptr<SandboxProvider> { return nullptr; }));
  json arguments{{"command", command}, {"description", "d"}};
  if (timeout_ms) arguments["timeoutMs"] = *timeout_ms;
  auto result = await_task(loop, tool.call(arguments, {}));
  CHECK_FALSE(result.is_error);
  return result.text;
}

}  // namespace

TEST_CASE("bash_tool: what a model reads of real commands") {
  CHECK(text_of("echo hello") == "hello\n");
  CHECK(text_of("true") == "(no output)");
  CHECK(text_of("echo out; echo err >&2") == "out\n[stderr]\nerr\n");
  CHECK(text_of("printf out; echo err >&2") == "out\n[stderr]\nerr\n");
  CHECK(text_of("echo failing; exit 3") == "failing\n[exit code: 3]");
  CHECK(text_of("printf failing; exit 3") == "failing\n[exit code: 3]");
  CHECK(text_of("kill -KILL $$") == "(no output)\n[killed by signal: SIGKILL]");
}

TEST_CASE("bash_tool: what a model reads of a timeout") {
  CHECK(text_of("sleep 60", 100) ==
        "(no output)\n[timed out after 100ms]\n[killed by signal: SIGTERM]");
  CHECK(text_of("trap 'exit 0' TERM; while :; do :; done", 500) ==
        "(no output)\n[timed out after 500ms]");
}

TEST_CASE("bash_tool: a denial is marked before the exit code") {
  auto result = finished("", "x: Permission denied\n", 1);
  result.outcome = BashOutcome::denied;
  result.sandbox.mode = SandboxMode::workspace_write;
  result.sandbox.denied = true;
  CHECK(render_result(result) ==
        "[stderr]\nx: Permission denied\n"
        "[sandbox: file access denied under workspace-write mode]\n[exit code: 1]");
  result.sandbox.denied = false;
  CHECK(render_result(result) == "[stderr]\nx: Permission denied\n[exit code: 1]");
}

TEST_CASE("bash_tool: a truncated stream says where the whole is") {
  auto result = finished("tail");
  result.out.truncated = true;
  result.out.total = 5000;
  result.out.spill_path = "/var/tmp/x.log";
  CHECK(render_result(result) == "tail\n[output truncated; full output: /var/tmp/x.log]");
  result.out.spill_path.reset();
  CHECK(render_result(result) == "tail\n[output truncated; full output: (unavailable)]");
  result.err = {
      "\x98\x80"
      "e\n",
      true,
      9000,
      "/var/tmp/y.log",
      {}};
  CHECK(render_result(result) ==
        "tail\n[stderr]\ne\n[output truncated; full output: (unavailable)]\n"
        "[output truncated; full output: /var/tmp/y.log]");
}

TEST_CASE("bash_tool: bytes that are no text become text") {
  CHECK(render_result(finished("a\xff"
                               "b")) ==
        "a\xEF\xBF\xBD"
        "b");
}

TEST_CASE("bash_tool: a command that failed is no error of the call") {
  Rig rig;
  rig.shell->result = finished("failing\n", "", 3);
  auto result = rig.call({{"command", "x"}, {"description", "d"}});
  CHECK_FALSE(result.is_error);
  CHECK(result.text == "failing\n[exit code: 3]");
  CHECK(result.structured["outcome"] == "failed");
  CHECK(result.structured["exitCode"] == 3);
  CHECK_FALSE(result.structured.contains("error"));
}

TEST_CASE("bash_tool: the arguments reach the shell and nothing beside them") {
  Rig rig;
  rig.shell->result = finished("");
  rig.call(
      {{"command", " a 'b' "}, {"description", "d"}, {"timeoutMs", 1500.5}, {"workdir", "sub"}});
  REQUIRE(rig.shell->request);
  CHECK(rig.shell->request->command == " a 'b' ");
  CHECK(rig.shell->request->timeout_ms == 1500.5);
  CHECK(rig.shell->request->workdir == "sub");
  CHECK_FALSE(rig.shell->request->input);
  CHECK_FALSE(rig.shell->request->stdout_max_bytes);
  CHECK(rig.shell->request->environment.empty());
  CHECK_FALSE(rig.shell->request->policy);

  rig.call({{"command", "a"}});
  CHECK_FALSE(rig.shell->request->timeout_ms);
  CHECK_FALSE(rig.shell->request->workdir);
}

TEST_CASE("bash_tool: bad arguments are an error result and nothing runs") {
  struct Row {
    json arguments;
    std::string text;
  };
  Rig rig;
  for (const auto& row : {
           Row{json::object(), "missing required property \"command\""},
           Row{{{"description", "d"}}, "missing required property \"command\""},
           Row{{{"command", 5}}, "\"command\" must be a string"},
           Row{{{"command", nullptr}}, "\"command\" must be a string"},
           Row{{{"command", ""}}, "invalid command: expected a non-empty string"},
           Row{{{"command", " \n\t"}}, "invalid command: expected a non-empty string"},
           Row{{{"command", "a"}, {"description", " "}},
               "invalid description: expected a non-empty string"},
           Row{{{"command", "a"}, {"description", 1}}, "\"description\" must be a string"},
           Row{{{"command", "a"}, {"workdir", false}}, "\"workdir\" must be a string"},
           Row{{{"command", "a"}, {"timeoutMs", "5"}}, "\"timeoutMs\" must be a number"},
           Row{{{"command", "a"}, {"timeoutMs", nullptr}}, "\"timeoutMs\" must be a number"},
           Row{{{"command", "a"}, {"timeoutMs", -1}},
               "invalid timeoutMs: expected a positive number, got -1"},
           Row{{{"command", "a"}, {"timeoutMs", 0}},
               "invalid timeoutMs: expected a positive number, got 0"},
           Row{json::array({"a"}), "arguments must be an object"},
           Row{"echo a", "arguments must be an object"},
           Row{nullptr, "arguments must be an object"},
       }) {
    CAPTURE(row.text);
    auto result = rig.call(row.arguments);
    CHECK(result.is_error);
    CHECK(result.text == "Error: " + row.text);
    CHECK(result.structured["error"]["code"] == "ARGUMENTS_INVALID");
    CHECK(result.structured["sandbox"]["ran"] == false);
  }
  CHECK(rig.shell->runs == 0);
  CHECK_FALSE(rig.shell->request);
}

TEST_CASE("bash_tool: bad arguments are not the fault of the sandbox") {
  Rig rig;
  auto result = rig.call({{"command", ""}});
  CHECK(result.structured["outcome"] == "failed");
  CHECK(result.structured["sandbox"]["runnerFailed"] == false);
}

TEST_CASE("bash_tool: an argument that is unknown is refused with the nearest") {
  Rig rig;
  for (const char* name : {"env", "stdin", "stdoutMaxBytes", "sandbox_permissions"}) {
    auto result = rig.call({{"command", "a"}, {name, "x"}});
    CHECK(result.is_error);
    CHECK_THAT(result.text, ContainsSubstring("unknown property \"" + std::string(name) + "\""));
  }
  CHECK_THAT(rig.call({{"command", "a"}, {"timeoutMS", 5}}).text,
             ContainsSubstring("did you mean \"timeoutMs\""));
  CHECK(rig.shell->runs == 0);
}

TEST_CASE("bash_tool: what the shell refuses is an error result with its code") {
  Rig rig;
  rig.shell->resolve_error = Error("REQUEST_INVALID", "the command holds a NUL byte", "command");
  auto result = rig.call({{"command", "a"}});
  CHECK(result.is_error);
  CHECK(result.text == "Error: the command holds a NUL byte");
  CHECK(result.structured["error"]["code"] == "REQUEST_INVALID");
  CHECK(rig.shell->runs == 0);
}

TEST_CASE("bash_tool: a sandbox that is not there is an error result with its code") {
  Rig rig;
  rig.shell->run_error = Error("SANDBOX_UNAVAILABLE", "none");
  auto result = rig.call({{"command", "a"}});
  CHECK(result.is_error);
  CHECK(result.text == "Error: none");
  CHECK(result.structured["outcome"] == "runner-failed");
  CHECK(result.structured["error"]["code"] == "SANDBOX_UNAVAILABLE");
  // The mode that the call would have had.
  CHECK(result.structured["sandbox"]["mode"] == "workspace-write");
}

TEST_CASE("bash_tool: a runner that failed is an error result with the whole text") {
  Rig rig;
  rig.shell->result.outcome = BashOutcome::runner_failed;
  rig.shell->result.sandbox.runner_failed = true;
  rig.shell->result.error = CallError{"SANDBOX_UNAVAILABLE", "text Runner failure: \xff"};
  auto result = rig.call({{"command", "a"}});
  CHECK(result.is_error);
  CHECK(result.text == "Error: text Runner failure: \xEF\xBF\xBD");
  CHECK(result.structured["error"]["code"] == "SANDBOX_UNAVAILABLE");
}

TEST_CASE("bash_tool: the abort signal of the call reaches the shell") {
  Rig rig;
  rig.shell->result = finished("");
  AbortController controller;
  rig.call({{"command", "a"}}, controller.signal());
  CHECK_FALSE(rig.shell->aborted);
  controller.abort();
  rig.call({{"command", "a"}}, controller.signal());
  CHECK(rig.shell->aborted);
}
