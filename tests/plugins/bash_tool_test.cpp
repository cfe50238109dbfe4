// SPDX-License-Identifier: MIT
#include "plugins/tool-bash/bash_tool.hpp"

#include <signal.h>

#include "bash-sandbox/executor.hpp"
#include "framework/error.hpp"
#include "plugins/jobs/job_registry.hpp"
#include "plugins/tool-bash/bash_job.hpp"
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
    if (asked.policy) spec.policy = *asked.policy;
    return spec;
  }
  Task<BashResult> run(BashSpec, AbortSignal abort, OutputSink* sink) override {
    ++runs;
    aborted = abort.aborted();
    if (run_error) throw *run_error;
    if (sink) sink->on_output(Stream::output, std::span<const char>("seen", 4));
    co_return result;
  }
  std::shared_ptr<BashProcess> start(BashSpec, AbortSignal) override {
    ++starts;
    return process;
  }
  SandboxMode sandbox_mode() const override { return mode; }

  mutable std::optional<BashRequest> request;
  std::optional<Error> resolve_error;
  std::optional<Error> run_error;
  BashResult result;
  int runs = 0;
  int starts = 0;
  bool aborted = false;
  SandboxMode mode = SandboxMode::read_only;
  std::shared_ptr<BashProcess> process;
};

// A job's command that ends when the test says so.
class FakeProcess final : public BashProcess {
 public:
  explicit FakeProcess(Loop& loop) : done_(loop) {}
  BashProcessStatus status() const override { return state; }
  BashRead read() override { return std::exchange(next, {}); }
  bool kill() override {
    if (state != BashProcessStatus::running) return false;
    state = BashProcessStatus::killed;
    BashResult result;
    result.signal = SIGTERM;
    done_.settle(result);
    return true;
  }
  Completion<BashResult> done() const override { return done_; }
  void end(int code) {
    state = BashProcessStatus::completed;
    BashResult result;
    result.exit_code = code;
    done_.settle(result);
  }
  BashProcessStatus state = BashProcessStatus::running;
  BashRead next;

 private:
  Completion<BashResult> done_;
};

class FakeApproval final : public Approval {
 public:
  Task<EscalationOutcome> request(ApprovalRequest request, AbortSignal) override {
    asked.push_back(request.escalation);
    co_return outcome;
  }
  bool has_answerers() const override { return answerers; }
  void add(std::shared_ptr<Answerer>, Place) override {}
  void remove(const std::shared_ptr<Answerer>&) override {}
  std::vector<Escalation> asked;
  EscalationOutcome outcome = EscalationOutcome::approved;
  bool answerers = true;
};

struct Rig {
  explicit Rig(BashAbilities abilities = {}, SandboxMode mode = SandboxMode::read_only) {
    shell->mode = mode;
    policies = std::make_shared<SandboxPolicyService>(SandboxPolicyConfig{mode, "/tmp"});
    BashToolServices services{shell, policies, [this] { return approval; },
                              [this] { return jobs; }};
    tool.emplace(loop, std::move(services), abilities, Log::standard_error(LogLevel::off));
  }
  ToolResult call(json arguments, AbortSignal abort = {}) {
    ToolCall made;
    made.arguments = std::move(arguments);
    made.abort = std::move(abort);
    made.id = "call-1";
    made.session = session;
    return await_task(loop, tool->call(std::move(made)));
  }
  Loop loop;
  std::shared_ptr<FakeShell> shell = std::make_shared<FakeShell>();
  std::shared_ptr<SandboxPolicyService> policies;
  std::shared_ptr<FakeApproval> approval;
  std::shared_ptr<Jobs> jobs;
  std::shared_ptr<SessionLog> session;
  std::optional<BashTool> tool;
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
  auto shell =
      std::make_shared<BashExecutor>(loop, BashSandboxConfig{}, policies,
                                     []() -> std::shared_ptr<SandboxProvider> { return nullptr; });
  BashTool tool(loop, {shell, policies, [] { return nullptr; }, [] { return nullptr; }}, {},
                Log::standard_error(LogLevel::off));
  json arguments{{"command", command}, {"description", "d"}};
  if (timeout_ms) arguments["timeoutMs"] = *timeout_ms;
  ToolCall made;
  made.arguments = std::move(arguments);
  auto result = await_task(loop, tool.call(std::move(made)));
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
  CHECK(rig.shell->request->policy->mode == SandboxMode::read_only);

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
  for (const char* name : {"env", "stdin", "stdoutMaxBytes", "sandboxPermissions"}) {
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
  CHECK(result.structured["sandbox"]["mode"] == "read-only");
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

TEST_CASE("bash_tool: a call that is aborted before it begins starts nothing") {
  Rig rig;
  AbortController controller;
  controller.abort();
  auto result = rig.call({{"command", "a"}}, controller.signal());
  CHECK(result.is_error);
  CHECK(result.text == "Error: tool call aborted before dispatch");
  CHECK(result.structured["error"]["code"] == "ABORTED_BEFORE_DISPATCH");
  CHECK(rig.shell->runs == 0);
}

TEST_CASE("bash_tool: a call that is aborted while it runs is an error that says so") {
  Rig rig;
  rig.shell->result = finished("partial");
  rig.shell->result.outcome = BashOutcome::aborted;
  rig.shell->result.aborted = true;
  auto result = rig.call({{"command", "a"}});
  CHECK(result.is_error);
  CHECK(result.text == "Error: tool call aborted");
  CHECK(result.structured["error"]["code"] == "ABORTED");
  CHECK(result.structured["stdout"]["text"] == "partial");
}

TEST_CASE("bash_tool: output is seen while the command prints") {
  Rig rig;
  rig.shell->result = finished("");
  std::string seen;
  ToolCall made;
  made.arguments = {{"command", "a"}};
  made.on_output = [&](std::string_view bytes) { seen += bytes; };
  await_task(rig.loop, rig.tool->call(std::move(made)));
  CHECK(seen == "seen");
}

TEST_CASE("bash_tool: the directory of a session is the base of a working directory") {
  Rig rig;
  rig.shell->result = finished("");
  rig.session = std::make_shared<MemorySession>(Session{"s", "/usr", {}});
  rig.call({{"command", "pwd"}});
  CHECK(rig.shell->request->workdir == "/usr");
  CHECK(rig.shell->request->policy->workspace_root == "/usr");
  rig.call({{"command", "pwd"}, {"workdir", "bin"}});
  CHECK(rig.shell->request->workdir == "/usr/bin");
  rig.call({{"command", "pwd"}, {"workdir", "/tmp"}});
  CHECK(rig.shell->request->workdir == "/tmp");
  rig.session = nullptr;
  rig.call({{"command", "pwd"}});
  CHECK_FALSE(rig.shell->request->workdir);
}

// ---- escalation -------------------------------------------------------------------------------

namespace {
const json kEscalating{{"command", "make"},
                       {"sandbox_permissions", "workspace-write"},
                       {"justification", "it writes build/"}};
}

TEST_CASE("bash_tool: a granted escalation is for one call") {
  Rig rig;
  rig.shell->result = finished("");
  rig.session = std::make_shared<MemorySession>(Session{"s", "/usr", {}});
  rig.approval = std::make_shared<FakeApproval>();
  auto result = rig.call(kEscalating);
  CHECK_FALSE(result.is_error);
  CHECK(rig.shell->request->policy->mode == SandboxMode::workspace_write);
  CHECK(rig.shell->request->policy->workspace_root == "/usr");
  REQUIRE(rig.approval->asked.size() == 1);
  CHECK(rig.approval->asked[0].reason == "escalate sandbox to workspace-write: it writes build/");
  CHECK(rig.approval->asked[0].tool == "bash");
  CHECK(rig.approval->asked[0].call_id == "call-1");
  CHECK(rig.approval->asked[0].detail == "make");

  rig.call({{"command", "make"}});
  CHECK(rig.shell->request->policy->mode == SandboxMode::read_only);
  CHECK(rig.approval->asked.size() == 1);
}

TEST_CASE("bash_tool: what is not wider than the session's own mode asks nobody") {
  Rig rig;
  rig.approval = std::make_shared<FakeApproval>();
  auto session = std::make_shared<MemorySession>(Session{"s", std::nullopt, {}});
  session->append("sandbox/mode", {{"mode", "workspace-write"}});
  rig.session = session;
  auto result = rig.call(kEscalating);
  CHECK(result.is_error);
  CHECK_THAT(result.text, ContainsSubstring("not strictly wider"));
  CHECK(rig.approval->asked.empty());
  CHECK(rig.shell->runs == 0);
}

TEST_CASE("bash_tool: whatever is no approval runs nothing and says why") {
  Rig rig;
  auto refused = [&](const std::string& text, const std::string& code) {
    auto result = rig.call(kEscalating);
    CHECK(result.is_error);
    CHECK(result.text == "Error: " + text);
    CHECK(result.structured["error"]["code"] == code);
    CHECK(result.structured["outcome"] == "failed");
    CHECK(result.structured["sandbox"]["runnerFailed"] == false);
  };
  refused(
      "sandbox escalation to \"workspace-write\" requires approval, but no approval service is "
      "composed",
      "APPROVAL_UNAVAILABLE");
  rig.approval = std::make_shared<FakeApproval>();
  refused(
      "sandbox escalation to \"workspace-write\" requires approval, but the call has no agent to "
      "route it through",
      "APPROVAL_UNAVAILABLE");
  rig.session = std::make_shared<MemorySession>(Session{"s", std::nullopt, {}});
  rig.approval->outcome = EscalationOutcome::rejected;
  refused("the user rejected escalating this command to \"workspace-write\"", "APPROVAL_REJECTED");
  rig.approval->outcome = EscalationOutcome::cancelled;
  refused("approval for escalating to \"workspace-write\" was cancelled", "APPROVAL_CANCELLED");
  rig.approval->outcome = EscalationOutcome::unavailable;
  refused(
      "sandbox escalation to \"workspace-write\" requires approval, but no approval channel is "
      "available",
      "APPROVAL_UNAVAILABLE");
  rig.approval->outcome = static_cast<EscalationOutcome>(9);
  auto bogus = rig.call(kEscalating);
  CHECK_THAT(bogus.text, ContainsSubstring("unreachable variant in EscalationOutcome"));
  CHECK(rig.shell->runs == 0);
}

TEST_CASE("bash_tool: over a shell that does not confine there is nothing to escalate") {
  for (bool enabled : {true, false}) {
    Rig rig({true, enabled},
            enabled ? SandboxMode::danger_full_access : SandboxMode::workspace_write);
    rig.session = std::make_shared<MemorySession>(Session{"s", std::nullopt, {}});
    rig.approval = std::make_shared<FakeApproval>();
    auto result = rig.call(kEscalating);
    CHECK(result.text ==
          "Error: sandbox_permissions is not available in this composition (no sandboxing executor "
          "to escalate)");
    auto properties = rig.tool->describe().input_schema["properties"];
    CHECK_FALSE(properties.contains("sandbox_permissions"));
    CHECK_FALSE(properties.contains("justification"));
  }
}

TEST_CASE("bash_tool: a denial offers a wider mode only where somebody can be asked") {
  Rig rig;
  rig.shell->result = finished("", "x: Read-only file system\n", 1);
  rig.shell->result.sandbox.denied = true;
  const std::string hint = "[sandbox: escalation available";
  CHECK_THAT(rig.call({{"command", "a"}}).text, !ContainsSubstring(hint));
  rig.session = std::make_shared<MemorySession>(Session{"s", std::nullopt, {}});
  rig.approval = std::make_shared<FakeApproval>();
  CHECK_THAT(rig.call({{"command", "a"}}).text,
             ContainsSubstring("[sandbox: file access denied under read-only mode]\n" + hint) &&
                 ContainsSubstring("retry this exact command once") &&
                 ContainsSubstring("\n[exit code: 1]"));
  rig.approval->answerers = false;
  CHECK_THAT(rig.call({{"command", "a"}}).text, !ContainsSubstring(hint));
}

// ---- the schema -------------------------------------------------------------------------------

TEST_CASE("bash_tool: the schema has what this deployment can do") {
  Rig rig;
  auto schema = rig.tool->describe().input_schema;
  CHECK(schema["required"] == nlohmann::ordered_json::array({"command"}));
  for (const char* name : {"command", "description", "timeoutMs", "workdir", "run_in_background",
                           "sandbox_permissions", "justification"})
    CHECK(schema["properties"].contains(name));
  CHECK(schema["properties"]["sandbox_permissions"]["enum"] ==
        nlohmann::ordered_json::array({"workspace-write", "danger-full-access"}));

  Rig less({false, true});
  CHECK_FALSE(less.tool->describe().input_schema["properties"].contains("run_in_background"));
  CHECK_THAT(less.tool->describe().description,
             ContainsSubstring("Background execution is not available"));
  auto result = less.call({{"command", "a"}, {"run_in_background", true}});
  CHECK(result.text ==
        "Error: run_in_background is disabled for this deployment (enableRunInBackground: false)");
}

// ---- background -------------------------------------------------------------------------------

namespace {
struct JobRig : Rig {
  JobRig() {
    shell->process = process;
    jobs = std::make_shared<JobRegistry>(loop, JobLimits{}, Log::standard_error(LogLevel::off));
  }
  // Until what was settled has been seen.
  void turn() {
    bool done = false;
    loop.post([&] { loop.post([&] { done = true; }); });
    loop.run_until([&] { return done; });
  }
  std::shared_ptr<FakeProcess> process = std::make_shared<FakeProcess>(loop);
};
}  // namespace

TEST_CASE("bash_tool: a background command is a job") {
  JobRig rig;
  auto result = rig.call({{"command", "make"}, {"run_in_background", true}});
  CHECK_FALSE(result.is_error);
  CHECK(result.text == "started background job bash-1");
  CHECK(result.structured == nlohmann::ordered_json{{"kind", "background"}, {"jobId", "bash-1"}});
  CHECK(rig.shell->runs == 0);
  CHECK(rig.shell->starts == 1);

  rig.process->next.output = "half\n";
  CHECK(rig.jobs->read("", "bash-1").output == "half\n");
  rig.process->end(0);
  rig.turn();
  auto read = rig.jobs->read("", "bash-1");
  CHECK(read.output.empty());
  CHECK(job_status_marker(read.job) == "[status: completed, exit code: 0]");
}

TEST_CASE("bash_tool: a background command that is killed says by what") {
  JobRig rig;
  rig.call({{"command", "make"}, {"run_in_background", true}});
  CHECK(rig.jobs->kill("", "bash-1", "enough").requested);
  rig.turn();
  CHECK(job_status_marker(rig.jobs->read("", "bash-1").job) == "[status: killed, signal: SIGTERM]");
}

TEST_CASE("bash_tool: without the jobs plugin a background call starts nothing") {
  Rig rig;
  auto result = rig.call({{"command", "make"}, {"run_in_background", true}});
  CHECK(result.is_error);
  CHECK_THAT(result.text, ContainsSubstring("background jobs unavailable"));
  CHECK(rig.shell->starts == 0);
}

TEST_CASE("bash_tool: what a lossy read says") {
  BashRead read;
  read.output = "tail";
  read.lossy = true;
  CHECK(render_read(read) ==
        "tail\n[some output was dropped from memory; full output: (unavailable)]");
  read.output = "tail\n";
  read.stdout_spill_path = "/a";
  CHECK(render_read(read) == "tail\n[some output was dropped from memory; full output: /a]");
  read.output = "";
  read.stderr_spill_path = "/b";
  CHECK(render_read(read) == "[some output was dropped from memory; full output: /a, /b]");
}

TEST_CASE("bash_tool: how an ended process becomes the outcome of a job") {
  BashResult result;
  CHECK(job_outcome(result, BashProcessStatus::killed).detail == "killed before exit");
  CHECK(job_outcome(result, BashProcessStatus::completed).detail == "exit code: 0");
  result.exit_code = 3;
  CHECK(job_outcome(result, BashProcessStatus::completed).detail == "exit code: 3");
  result.exit_code.reset();
  result.signal = SIGTERM;
  CHECK(job_outcome(result, BashProcessStatus::killed).detail == "signal: SIGTERM");
}
