// SPDX-License-Identifier: MIT
#include "sandbox-local/local_sandbox.hpp"

#include "framework/error.hpp"
#include "framework/fields.hpp"
#include "sandbox-local/bwrap.hpp"
#include "sandbox-local/landlock.hpp"
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

LocalSandbox::LocalSandbox(SandboxLocalConfig config, BackendHost host)
    : config_(std::move(config)), host_(std::move(host)) {}

namespace {

ConfinedArgv confine_with(Backend backend, const BackendHost& host,
                          const std::vector<std::string>& argv, const SandboxPolicy& policy,
                          const std::string& working_directory) {
  switch (backend) {
    case Backend::bwrap:
      return confine_bwrap(host, argv, policy, working_directory);
    case Backend::landlock:
      return confine_landlock(host, argv, policy);
  }
  throw Error("SANDBOX_UNAVAILABLE", "unreachable variant in Backend");
}

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : std::string(between)) + part;
  return text;
}

}  // namespace

Task<std::shared_ptr<LocalSandbox>> LocalSandbox::open(Loop& loop, SandboxLocalConfig config,
                                                       BackendHost host, Log log) {
  std::shared_ptr<LocalSandbox> sandbox(new LocalSandbox(std::move(config), std::move(host)));
  const SandboxLocalConfig& settings = sandbox->config_;
  if (!settings.runner_command.empty()) co_return sandbox;

  if (settings.backends.size() == 1) {
    sandbox->backend_ = settings.backends.front();
    co_return sandbox;
  }
  for (Backend backend : settings.backends) {
    auto probing = probe_backend(loop, backend, sandbox->host_,
                                 std::chrono::milliseconds(settings.probe_timeout_ms));
    ProbeVerdict verdict = co_await probing;
    if (verdict.usable && settings.require_full) {
      SandboxPolicy policy{ConfinedSandboxMode::workspace_write, "/"};
      auto confined = confine_with(backend, sandbox->host_, {"true"}, policy, "/");
      if (confined.enforcement != SandboxEnforcement::full || !verdict.metadata_protected) {
        verdict.usable = false;
        verdict.reason = "it enforces only partially and requireFull is set: " +
                         join(confined.enforcement_reasons, "; ");
      }
    }
    if (verdict.usable) {
      log.debug("backend " + enum_name(backend) + " is usable");
      sandbox->backend_ = backend;
      sandbox->metadata_protected_ = verdict.metadata_protected;
      co_return sandbox;
    }
    log.debug("backend " + enum_name(backend) + " is not usable: " + verdict.reason);
    sandbox->reasons_.push_back(enum_name(backend) + ": " + verdict.reason);
  }
  co_return sandbox;
}

ConfinedArgv LocalSandbox::confine(const std::vector<std::string>& argv,
                                   const SandboxPolicy& policy,
                                   const std::string& working_directory) {
  bool custom = !config_.runner_command.empty();
  if (policy.mode == ConfinedSandboxMode::workspace_write) {
    std::vector<std::string> protected_paths = host_.protected_paths;
    protected_paths.push_back(host_.launcher);
    if (custom) protected_paths.push_back(config_.runner_command.front());
    check_workspace_root(policy.workspace_root, protected_paths);
    if (!custom && backend_ == Backend::landlock)
      for (const auto& path : protected_paths)
        if (is_within(canonicalize(path), "/tmp"))
          throw SandboxUnavailableError(
              policy.mode, "landlock: its temporary area is the host's /tmp, where " + path +
                               " lies, which a command could replace; install it elsewhere");
  }
  if (!custom && !backend_) throw SandboxUnavailableError(policy.mode, join(reasons_, "; "));
  if (!custom && backend_ == Backend::bwrap && host_.bwrap.empty())
    throw SandboxUnavailableError(policy.mode, "bwrap: " + std::string(kBwrapMissing));
  bool covers_tmp = custom || backend_ == Backend::bwrap;
  if (covers_tmp && bwrap_hides(policy, working_directory))
    throw Error(
        "WORKDIR_REFUSED",
        "the working directory \"" + working_directory +
            "\" is below /tmp and outside the workspace, where the sandbox has a private /tmp; "
            "choose one in the workspace \"" +
            policy.workspace_root + "\"; nothing was run",
        working_directory);

  ConfinedArgv confined;
  if (custom) {
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
  confined = confine_with(*backend_, host_, argv, policy, working_directory);
  if (!metadata_protected_ && confined.enforcement == SandboxEnforcement::full) {
    confined.enforcement = SandboxEnforcement::partial;
    confined.enforcement_reasons.push_back("a chmod outside the workspace was not stopped");
  }
  if (config_.require_full && confined.enforcement != SandboxEnforcement::full)
    throw SandboxUnavailableError(policy.mode, confined.backend +
                                                   ": it enforces only partially and requireFull "
                                                   "is set: " +
                                                   join(confined.enforcement_reasons, "; "));
  return confined;
}

}  // namespace stockade
