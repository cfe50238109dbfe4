// SPDX-License-Identifier: MIT
#include "plugins/tool-bash/bash_tool.hpp"

#include <algorithm>

#include "bash-sandbox/utf8_text.hpp"
#include "framework/error.hpp"
#include "plugins/tool-bash/bash_job.hpp"

namespace stockade {

namespace {

// Failures that are nobody's but the caller's, or the answer of whoever was asked: the sandbox is
// fine.
bool is_refusal(const std::string& code) {
  for (const char* each :
       {"ESCALATION_INVALID", "APPROVAL_UNAVAILABLE", "APPROVAL_REJECTED", "APPROVAL_CANCELLED",
        "ABORTED_BEFORE_DISPATCH", "JOBS_UNAVAILABLE", "JOB_LIMIT", "SESSION_UNWRITABLE"})
    if (code == each) return true;
  return false;
}

ToolResult error_result(const BashResult& result) {
  return {"Error: " + valid_utf8(result.error->message), to_json(result), true};
}

class OutputTap final : public OutputSink {
 public:
  explicit OutputTap(std::function<void(std::string_view)> tap) : tap_(std::move(tap)) {}
  // Both streams become one text: a character whose rest is still to come waits here.
  void on_output(Stream stream, std::span<const char> bytes) override {
    std::string& waiting = waiting_[stream == Stream::error];
    waiting.append(bytes.data(), bytes.size());
    const std::size_t whole = to_character_end(waiting).size();
    if (whole == 0) return;
    tap_(std::string_view(waiting).substr(0, whole));
    waiting.erase(0, whole);
  }

 private:
  std::string waiting_[2];
  std::function<void(std::string_view)> tap_;
};

}  // namespace

BashTool::BashTool(Loop& loop, BashToolServices services, BashAbilities abilities, Log log)
    : loop_(loop), services_(std::move(services)), abilities_(abilities), log_(std::move(log)) {
  if (services_.shell->sandbox_mode() == SandboxMode::danger_full_access)
    abilities_.escalation = false;
}

ToolDescription BashTool::describe() const {
  std::string text =
      "Runs a command with bash, behind a file-effect sandbox. The standing mode is " +
      to_string(services_.shell->sandbox_mode()) +
      ": read-only lets a command write nothing but scratch space of its own; workspace-write also "
      "the workspace; danger-full-access anything. Each call starts a new shell; standard input is "
      "empty. A line in brackets at the end of the result tells what is not plain success: [exit "
      "code: N], [timed out after Nms], [killed by signal: NAME], or [sandbox: file access denied "
      "under MODE mode], which means that the sandbox stopped a file effect, not that the file "
      "itself forbids it.";
  text += abilities_.background
              ? " With run_in_background it returns at once and the command goes on as a job."
              : " Background execution is not available.";
  return {"bash",
          "Run a bash command",
          std::move(text),
          bash_input_schema(abilities_),
          bash_output_schema(),
          {{"title", "Run a bash command"},
           {"readOnlyHint",
            services_.shell->sandbox_mode() == SandboxMode::read_only && !abilities_.escalation},
           {"destructiveHint", true},
           {"idempotentHint", false},
           // Files are what the sandbox governs; the network is open.
           {"openWorldHint", true}}};
}

// The order is a promise: what is checked later is not reached when something before it refuses.
Task<BashSpec> BashTool::prepare(const ToolCall& call, const BashArguments& arguments,
                                 SandboxMode& mode) {
  auto wider = check_escalation(arguments.escalation);
  const Session* session = call.session ? &call.session->session() : nullptr;
  SandboxExecutionPolicy policy = services_.policies->resolve({session, std::nullopt});
  mode = policy.mode;
  if (wider) {
    auto approval = services_.approval();
    EscalationApprover approver;
    if (approval)
      approver = [&call, approval](Escalation escalation) {
        return approval->request({std::move(escalation), call.session, call.asker}, call.abort);
      };
    Escalation escalation{policy.mode, *wider, policy.workspace_root, "bash",
                          call.id,     {},     arguments.command};
    auto approving = approve_escalation(std::move(escalation), *arguments.escalation.justification,
                                        "command", session != nullptr, std::move(approver));
    SandboxMode granted = co_await approving;
    policy = services_.policies->resolve({session, granted});
  }

  BashRequest request;
  request.command = arguments.command;
  request.timeout_ms = arguments.timeout_ms;
  request.workdir = arguments.workdir;
  // The session's directory is the base, so that the process and its boundary agree.
  if (session && session->cwd && (!request.workdir || !request.workdir->starts_with('/')))
    request.workdir =
        policy.workspace_root + (request.workdir ? "/" + *request.workdir : std::string());
  request.policy = policy;
  mode = policy.mode;
  co_return services_.shell->resolve(request);
}

ToolResult BashTool::start_job(const ToolCall& call, const BashArguments& arguments,
                               BashSpec spec) {
  auto jobs = services_.jobs();
  if (!jobs)
    throw Error("JOBS_UNAVAILABLE",
                "background jobs unavailable: add the plugin \"jobs\" to the config", "jobs");
  std::string label = arguments.description.value_or(arguments.command);
  JobSnapshot job = jobs->start(
      call.session ? call.session->session().id : "", "bash", label.substr(0, 200),
      [&] { return make_bash_job(loop_, services_.shell, services_.code, std::move(spec)); });
  return {"started background job " + job.id, {{"kind", "background"}, {"jobId", job.id}}, false};
}

Task<ToolResult> BashTool::call(ToolCall call) {
  std::exception_ptr failure;
  SandboxMode mode = services_.shell->sandbox_mode();
  bool started = false;
  try {
    if (call.abort.aborted())
      throw Error("ABORTED_BEFORE_DISPATCH", "tool call aborted before dispatch");
    BashArguments arguments = read_bash_arguments(call.arguments, abilities_);
    auto preparing = prepare(call, arguments, mode);
    BashSpec spec = co_await preparing;
    if (call.session)
      call.session->append("call/started", {{"id", call.id},
                                            {"tool", "bash"},
                                            {"command", valid_utf8(arguments.command)},
                                            {"mode", to_string(mode)}});
    started = true;
    if (arguments.run_in_background) co_return start_job(call, arguments, std::move(spec));

    std::optional<OutputTap> tap;
    if (call.on_output) tap.emplace(call.on_output);
    auto running = services_.shell->run(std::move(spec), call.abort, tap ? &*tap : nullptr);
    BashResult result = co_await running;
    if (result.aborted && !result.error) result.error = CallError{"ABORTED", "tool call aborted"};
    started = false;
    record_end(call, result);
    if (result.error) co_return error_result(result);
    auto approval = services_.approval();
    bool offer = abilities_.escalation && call.session && approval &&
                 (call.asker || approval->has_answerers());
    co_return ToolResult{render_result(result, offer), to_json(result), false};
  } catch (...) {
    failure = std::current_exception();
  }
  BashResult failed = failure_result(failure, mode);
  if (is_refusal(failed.error->code)) {
    failed.outcome = BashOutcome::failed;
    failed.sandbox.runner_failed = false;
  }
  if (started) record_end(call, failed);
  co_return error_result(failed);
}

// A log that cannot be written does not undo what has happened.
void BashTool::record_end(const ToolCall& call, const BashResult& result) const {
  if (!call.session) return;
  try {
    nlohmann::ordered_json data{{"id", call.id}, {"outcome", to_string(result.outcome)}};
    if (result.exit_code) data["exitCode"] = *result.exit_code;
    if (result.signal) data["signal"] = signal_name(*result.signal);
    if (result.sandbox.denied) data["denied"] = true;
    if (result.error) data["error"] = result.error->code;
    call.session->append("call/ended", std::move(data));
  } catch (...) {
    log_.error("the end of a call is missing in its session's log: " +
               stockade::describe(std::current_exception()));
  }
}

}  // namespace stockade
