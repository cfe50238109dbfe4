// SPDX-License-Identifier: MIT
#include "bash-sandbox/executor.hpp"

#include <cmath>

#include "bash-sandbox/call.hpp"
#include "bash-sandbox/command_line.hpp"
#include "bash-sandbox/environment.hpp"
#include "framework/error.hpp"
#include "sandbox/roots.hpp"

namespace stockade {

namespace {

constexpr std::int64_t kMaxTimerMs = 2147483647;  // the vocabulary's bound, not libuv's

Error invalid_request(const std::string& what, const std::string& operand) {
  return Error("REQUEST_INVALID", what, operand);
}

double positive(const std::optional<double>& value, double fallback, const char* field) {
  if (!value) return fallback;
  if (!std::isfinite(*value) || *value <= 0)
    throw invalid_request(
        std::string("bash-sandbox: request.") + field + " must be a positive finite number", field);
  return *value;
}

}  // namespace

void check_bash_sandbox_config(const BashSandboxConfig& config) {
  auto positive_field = [](std::int64_t value, const char* field) {
    if (value <= 0)
      throw Error("CONFIG_INVALID",
                  std::string("bash-sandbox: ") + field + " must be a positive finite number",
                  std::string("$.") + field);
  };
  auto timer_field = [&](std::int64_t value, const char* field) {
    positive_field(value, field);
    if (value > kMaxTimerMs)
      throw Error("CONFIG_INVALID",
                  std::string("bash-sandbox: ") + field + " must be no greater than 2147483647",
                  std::string("$.") + field);
  };
  timer_field(config.timeout_ms, "timeoutMs");
  timer_field(config.max_timeout_ms, "maxTimeoutMs");
  timer_field(config.grace_ms, "graceMs");
  timer_field(config.drain_ms, "drainMs");
  positive_field(config.max_output_bytes, "maxOutputBytes");
  positive_field(config.max_spill_bytes, "maxSpillBytes");
  positive_field(config.max_spill_total_bytes, "maxSpillTotalBytes");
  positive_field(config.max_calls, "maxCalls");
  positive_field(config.max_queued_calls, "maxQueuedCalls");
}

BashExecutor::BashExecutor(Loop& loop, BashSandboxConfig config,
                           std::shared_ptr<const SandboxPolicyResolver> policies,
                           std::function<std::shared_ptr<SandboxProvider>()> sandbox,
                           std::shared_ptr<const void> code)
    : loop_(loop),
      config_(std::move(config)),
      policies_(std::move(policies)),
      sandbox_(std::move(sandbox)),
      environment_(std::make_shared<ShellEnvironmentRegistry>(config_.home)),
      code_(std::move(code)) {
  check_bash_sandbox_config(config_);
  config_.cwd = resolve_root(config_.cwd);
  SpillLimits limits{static_cast<std::uint64_t>(config_.max_spill_total_bytes),
                     config_.keep_spills};
  spills_ = std::make_shared<SpillDirectory>(loop_, limits, code_);
  SpillDirectory::remove_stale(loop_, code_);
  queue_ = std::make_shared<CallQueue>(loop_, static_cast<std::size_t>(config_.max_calls),
                                       static_cast<std::size_t>(config_.max_queued_calls));
}

BashSpec BashExecutor::resolve(const BashRequest& request) const {
  if (request.command.find('\0') != std::string::npos)
    throw invalid_request("the command holds a NUL byte, at which bash would cut it off",
                          "command");
  if (std::size_t most = most_command_line_bytes(); request.command.size() > most)
    throw invalid_request("the command has " + std::to_string(request.command.size()) +
                              " bytes; the kernel takes at most " + std::to_string(most) +
                              " here; write it to a file and run that",
                          "command");
  BashSpec spec;
  spec.command = request.command;
  spec.workdir = config_.cwd;
  if (request.workdir)
    spec.workdir =
        request.workdir->starts_with('/') ? *request.workdir : config_.cwd + "/" + *request.workdir;
  double limit = static_cast<double>(config_.max_timeout_ms);
  double timeout =
      positive(request.timeout_ms, static_cast<double>(config_.timeout_ms), "timeoutMs");
  spec.timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(std::min(timeout, limit))));
  auto kept = static_cast<std::size_t>(config_.max_output_bytes);
  spec.stdout_max_bytes = kept;
  spec.stderr_max_bytes = kept;
  double wanted = positive(request.stdout_max_bytes, 0.0, "stdoutMaxBytes");
  constexpr double kMostKept = 1 << 30;  // of one stream in memory, whatever a call asks for
  if (wanted > static_cast<double>(kept))
    spec.stdout_max_bytes = static_cast<std::size_t>(std::min(wanted, kMostKept));
  spec.input = request.input;
  spec.spill = request.spill;
  spec.environment = request.environment;
  spec.policy = request.policy ? *request.policy : policies_->resolve({});
  return spec;
}

ShellLoad BashExecutor::load() const {
  return {queue_->running(), queue_->limit(), queue_->waiting(), *background_};
}

std::shared_ptr<BashProcess> BashExecutor::launch(BashSpec spec, AbortSignal abort,
                                                  OutputSink* sink,
                                                  std::chrono::milliseconds queued,
                                                  std::shared_ptr<const void> token) {
  CallPlan plan;
  plan.spec = std::move(spec);
  plan.limits = {std::chrono::milliseconds(config_.grace_ms),
                 std::chrono::milliseconds(config_.drain_ms),
                 static_cast<std::uint64_t>(config_.max_spill_bytes)};
  plan.queued = queued;
  plan.code = code_;
  plan.token = std::move(token);
  auto mode = to_confined(plan.spec.policy.mode);
  plan.environment =
      build_environment(ambient_environment(), plan.spec.environment, mode.has_value(),
                        environment_->collect({plan.spec.policy.session_id}));
  const auto command_line = bash_command_line(plan.spec.command);
  const std::size_t bytes = command_line_bytes(command_line) + command_line_bytes(plan.environment);
  if (std::size_t most = most_command_line_bytes(); bytes > most)
    throw invalid_request("the command and its environment have " + std::to_string(bytes) +
                              " bytes together; the kernel takes at most " + std::to_string(most) +
                              " here; write the command to a file and run that",
                          "command");
  if (mode) {
    SandboxPolicy policy{*mode, plan.spec.policy.workspace_root, plan.spec.policy.session_id,
                         plan.spec.policy.extras};
    plan.confined = sandbox_()->confine(command_line, policy, resolve_root(plan.spec.workdir));
  }
  return std::make_shared<BashCall>(loop_, spills_, std::move(plan), std::move(abort), sink);
}

Task<BashResult> BashExecutor::run(BashSpec spec, AbortSignal abort, OutputSink* sink) {
  const auto asked = std::chrono::steady_clock::now();
  auto ticket = queue_->join(spec.policy.session_id.value_or(std::string()));
  AbortSubscription cancel = abort.on_abort([&ticket] { ticket->cancel(); });
  if (!abort.aborted()) {
    Completion<bool> admitted = ticket->admitted();
    co_await admitted;
  }
  cancel = {};
  // One that was aborted while it waited is not started; its call says so.
  const auto queued = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - asked);
  auto call = launch(std::move(spec), std::move(abort), sink, queued, nullptr);
  Completion<BashResult> done = call->done();
  co_return co_await done;
}

std::shared_ptr<BashProcess> BashExecutor::start(BashSpec spec, AbortSignal abort) {
  // A background command is bounded by its handle and not by the timeout of a call.
  spec.timeout = std::chrono::milliseconds(kMaxTimerMs);
  ++*background_;
  std::shared_ptr<const void> token(background_.get(),
                                    [count = background_](const void*) { --*count; });
  return launch(std::move(spec), std::move(abort), nullptr, std::chrono::milliseconds(0),
                std::move(token));
}

}  // namespace stockade
