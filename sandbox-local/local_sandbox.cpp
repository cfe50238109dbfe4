// SPDX-License-Identifier: MIT
#include "sandbox-local/local_sandbox.hpp"

#include "framework/error.hpp"
#include "framework/fields.hpp"
#include "sandbox-local/bwrap.hpp"
#include "sandbox-local/extras.hpp"
#include "sandbox-local/probe.hpp"
#include "sandbox/errors.hpp"
#include "sandbox/roots.hpp"

namespace stockade {

void check_sandbox_local_config(const SandboxLocalConfig& config) {
  auto refuse = [](const std::string& what, const std::string& key) {
    throw Error("CONFIG_INVALID", "sandbox-local: " + what, key);
  };
  if (config.backends.empty() && config.runner_command.empty())
    refuse("backends must name at least one backend", "$.backends");
  if (config.runner_command.empty() && !config.runner_failure_signatures.empty())
    refuse("runnerFailureSignatures requires runnerCommand", "$.runnerFailureSignatures");
  if (!config.runner_command.empty()) {
    if (config.runner_failure_signatures.empty())
      refuse("runnerCommand requires at least one runnerFailureSignatures entry",
             "$.runnerFailureSignatures");
    const std::string& program = config.runner_command.front();
    if (program.empty() || program.front() != '/')
      refuse("runnerCommand must begin with an absolute path, found \"" + program +
                 "\": a bare name would be looked up on PATH, where a command can plant a runner",
             "$.runnerCommand");
  }
  for (const auto& signature : config.runner_failure_signatures)
    if (signature.find_first_not_of(" \t\v\f") == std::string::npos ||
        signature.find_first_of("\r\n") != std::string::npos)
      refuse("runnerFailureSignatures entries must be non-empty single-line strings",
             "$.runnerFailureSignatures");
  if (config.probe_timeout_ms <= 0)
    refuse("probeTimeoutMs must be a positive finite number", "$.probeTimeoutMs");
}

LocalSandbox::LocalSandbox(Loop& loop, SandboxLocalConfig config, BackendHost host, Log log)
    : loop_(loop),
      config_(std::move(config)),
      host_(std::move(host)),
      log_(std::move(log)),
      temporary_(host_.launcher),
      tasks_(loop, [](std::exception_ptr) {}) {}

namespace {

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : std::string(between)) + part;
  return text;
}

std::string partial_reason(const std::vector<std::string>& reasons) {
  return "it enforces only partially and requireFull is set: " + join(reasons, "; ");
}

// A command must not be able to replace what confines the next one.
void check_protected(Backend backend, const SandboxPolicy& policy, const BackendHost& host,
                     const std::vector<std::string>& protected_paths) {
  if (backend != Backend::landlock && backend != Backend::seatbelt) return;
  for (const auto& path : protected_paths)
    for (const auto& area : host.temporary_areas)
      if (is_within(canonicalize(path), area))
        throw SandboxUnavailableError(
            policy.mode, enum_name(backend) + ": its temporary area is the host's " + area +
                             ", where " + path +
                             " lies, which a command could replace; install it elsewhere");
}

}  // namespace

Task<std::shared_ptr<LocalSandbox>> LocalSandbox::open(Loop& loop, SandboxLocalConfig config,
                                                       BackendHost host, Log log) {
  std::shared_ptr<LocalSandbox> sandbox(
      new LocalSandbox(loop, std::move(config), std::move(host), std::move(log)));
  const SandboxLocalConfig& settings = sandbox->config_;
  if (!settings.runner_command.empty()) co_return sandbox;
  if (settings.backends.size() == 1) {
    sandbox->backend_ = settings.backends.front();
    co_return sandbox;
  }
  auto choosing = sandbox->choose();
  co_await choosing;
  co_return sandbox;
}

Task<> LocalSandbox::choose() {
  constexpr int kAttempts = 3;
  std::vector<std::string> reasons;
  bool transient = false;
  for (Backend backend : config_.backends) {
    ProbeVerdict verdict;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      auto probing =
          probe_backend(loop_, backend, host_, std::chrono::milliseconds(config_.probe_timeout_ms));
      verdict = co_await probing;
      if (verdict.usable || !verdict.transient) break;
      auto pause = sleep(loop_, std::chrono::milliseconds(50));
      co_await pause;
    }
    if (verdict.usable && config_.require_full && !verdict.full()) {
      verdict.usable = false;
      verdict.reason = partial_reason(verdict.partial_reasons);
    }
    if (verdict.usable) {
      log_.debug("backend " + enum_name(backend) + " is usable");
      backend_ = backend;
      metadata_protected_ = verdict.metadata_protected;
      co_return;
    }
    log_.debug("backend " + enum_name(backend) + " is not usable: " + verdict.reason);
    reasons.push_back(enum_name(backend) + ": " + verdict.reason);
    transient = transient || verdict.transient;
  }
  reasons_ = std::move(reasons);
  transient_ = transient;
}

Task<> LocalSandbox::choose_again() {
  auto choosing = choose();
  co_await choosing;
}

ConfinedArgv LocalSandbox::confine_custom(const std::vector<std::string>& argv,
                                          const SandboxPolicy& policy) {
  ConfinedArgv confined;
  confined.argv = config_.runner_command;
  for (auto& word : plain_bwrap_profile(policy)) confined.argv.push_back(std::move(word));
  confined.argv.push_back("--");
  confined.argv.insert(confined.argv.end(), argv.begin(), argv.end());
  confined.backend = "custom";
  confined.enforcement = SandboxEnforcement::full;
  confined.denial_signatures = {"read-only file system", "permission denied"};
  confined.runner_failure_rules = {{std::nullopt, config_.runner_failure_signatures, {}}};
  return confined;
}

ConfinedArgv LocalSandbox::confine(const std::vector<std::string>& argv,
                                   const SandboxPolicy& policy,
                                   const std::string& working_directory) {
  bool custom = !config_.runner_command.empty();
  std::vector<std::string> protected_paths = host_.protected_paths;
  protected_paths.push_back(host_.launcher);
  if (custom) protected_paths.push_back(config_.runner_command.front());
  if (writes_workspace(policy)) {
    check_workspace_root(policy.workspace_root, protected_paths);
    if (!custom && backend_) check_protected(*backend_, policy, host_, protected_paths);
  }
  if (!custom && !backend_) {
    if (transient_ && tasks_.size() == 0) tasks_.start(choose_again());
    throw SandboxUnavailableError(policy.mode, join(reasons_, "; "));
  }
  bool private_tmp = custom || *backend_ == Backend::namespace_ || *backend_ == Backend::bwrap;
  if (private_tmp && hidden_by_private_tmp(policy, working_directory))
    throw Error(
        "WORKDIR_REFUSED",
        "the working directory \"" + working_directory +
            "\" is below /tmp and outside the workspace, where the sandbox has a private /tmp; "
            "choose one in the workspace \"" +
            policy.workspace_root + "\"; nothing was run",
        working_directory);
  ConfineExtras extras = examine_extras(policy, working_directory, protected_paths);
  if (custom) {
    if (policy.extras)
      throw SandboxUnavailableError(policy.mode,
                                    "custom: a runnerCommand knows none of writableRoots, "
                                    "protectedPaths, hiddenPaths and network");
    return confine_custom(argv, policy);
  }
  if (auto what = beyond(*backend_, extras)) throw SandboxUnavailableError(policy.mode, *what);

  if (auto missing = missing_runner(*backend_, host_))
    throw SandboxUnavailableError(policy.mode, enum_name(*backend_) + ": " + *missing);
  ConfineRequest request{argv, policy, working_directory, "", "", "", std::move(extras)};
  if (writes_workspace(policy)) {
    request.workspace_identity = file_identity(policy.workspace_root);
    if (private_tmp && !is_within("/tmp", policy.workspace_root))
      request.tmp = temporary_.directory_for(policy);
    if (!request.tmp.empty()) request.tmp_identity = file_identity(request.tmp);
  }
  ConfinedArgv confined = confine_with(*backend_, host_, request);
  if (!metadata_protected_ && confined.enforcement == SandboxEnforcement::full) {
    confined.enforcement = SandboxEnforcement::partial;
    confined.enforcement_reasons.push_back("a chmod outside the workspace was not stopped");
  }
  if (config_.require_full && confined.enforcement != SandboxEnforcement::full)
    throw SandboxUnavailableError(
        policy.mode, confined.backend + ": " + partial_reason(confined.enforcement_reasons));
  return confined;
}

}  // namespace stockade
