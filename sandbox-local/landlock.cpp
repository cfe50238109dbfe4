// SPDX-License-Identifier: MIT
#include "sandbox-local/landlock.hpp"

#include "sandbox/status.hpp"

namespace stockade {

std::vector<std::string> landlock_rules(const SandboxPolicy& policy) {
  std::vector<std::string> rules{"--ro", "/", "--rw", "/dev/null"};
  if (policy.mode == ConfinedSandboxMode::workspace_write)
    rules.insert(rules.end(), {"--rw", "/tmp", "--rw", policy.workspace_root});
  return rules;
}

ConfinedArgv confine_landlock(const BackendHost& host, const std::vector<std::string>& argv,
                              const SandboxPolicy& policy) {
  ConfinedArgv confined;
  confined.argv = {host.launcher, "--status-fd", std::to_string(kStatusDescriptor)};
  for (auto& rule : landlock_rules(policy)) confined.argv.push_back(std::move(rule));
  confined.argv.push_back("--");
  confined.argv.insert(confined.argv.end(), argv.begin(), argv.end());
  confined.backend = "landlock";
  confined.enforcement = SandboxEnforcement::partial;
  confined.enforcement_reasons = {
      "Landlock governs contents and names, but not metadata: permissions, owners, times and "
      "extended attributes of files outside the workspace can be changed"};
  if (policy.mode == ConfinedSandboxMode::workspace_write)
    confined.enforcement_reasons.push_back("the host's /tmp is the temporary area");
  confined.denial_signatures = {"permission denied"};
  confined.runner_failure_rules = {{std::vector<int>{125},
                                    {"landlock-run: "},
                                    {"landlock-run: partial enforcement (older Landlock ABI)"}}};
  confined.status_channel = true;
  return confined;
}

}  // namespace stockade
