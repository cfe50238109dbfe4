// SPDX-License-Identifier: MIT
#include "sandbox-local/landlock.hpp"

#include "sandbox/status.hpp"

namespace stockade {

std::vector<std::string> landlock_rules(const BackendHost& host, const SandboxPolicy& policy) {
  std::vector<std::string> rules{"--ro", "/", "--rw", "/dev/null"};
  if (!writes_workspace(policy)) return rules;
  for (const auto& area : host.temporary_areas) rules.insert(rules.end(), {"--rw", area});
  rules.insert(rules.end(), {"--rw", policy.workspace_root});
  return rules;
}

ConfinedArgv confine_landlock(const BackendHost& host, const ConfineRequest& request) {
  ConfinedArgv confined;
  confined.argv = {host.launcher, "--status-fd", std::to_string(kStatusDescriptor)};
  for (auto& rule : landlock_rules(host, request.policy)) confined.argv.push_back(std::move(rule));
  if (writes_workspace(request.policy))
    confined.argv.insert(confined.argv.end(), {"--identity", request.workspace_identity});
  for (const auto& root : request.extras.roots)
    confined.argv.insert(confined.argv.end(), {"--rw", root.path, "--identity", root.identity});
  confined.argv.push_back("--");
  confined.argv.insert(confined.argv.end(), request.argv.begin(), request.argv.end());
  confined.backend = "landlock";
  confined.enforcement = SandboxEnforcement::full;
  if (host.landlock_abi < kFullLandlockAbi) {
    confined.enforcement = SandboxEnforcement::partial;
    confined.enforcement_reasons = {
        "Landlock of this kernel (ABI " + std::to_string(host.landlock_abi) +
        ") does not govern truncate: files outside the workspace can be emptied"};
  }
  // EACCES is Landlock's word, EROFS that of the metadata filter.
  // The last is what a link or a move from outside into the workspace gets.
  confined.denial_signatures = {"permission denied", "read-only file system", "cross-device link"};
  confined.runner_failure_rules = {{std::vector<int>{125},
                                    {"landlock-run: "},
                                    {"landlock-run: partial enforcement (older Landlock ABI)"}}};
  confined.status_channel = true;
  confined.block_term = true;
  return confined;
}

}  // namespace stockade
