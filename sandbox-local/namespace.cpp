// SPDX-License-Identifier: MIT
#include "sandbox-local/namespace.hpp"

#include "sandbox-local/landlock.hpp"
#include "sandbox/roots.hpp"
#include "sandbox/status.hpp"

namespace stockade {

bool hidden_by_private_tmp(const SandboxPolicy& policy, const std::string& directory) {
  return writes_workspace(policy) && is_within(directory, "/tmp") && directory != "/tmp" &&
         !is_within(directory, policy.workspace_root);
}

ConfinedArgv confine_namespace(const BackendHost& host, const ConfineRequest& request) {
  ConfinedArgv confined;
  auto& out = confined.argv;
  out = {host.launcher, "--namespace", "--status-fd", std::to_string(kStatusDescriptor)};
  auto add = [&out](std::initializer_list<std::string> words) {
    out.insert(out.end(), words.begin(), words.end());
  };
  if (writes_workspace(request.policy)) {
    if (!request.tmp.empty()) add({"--tmp", request.tmp});
    add({"--rw", request.policy.workspace_root, "--identity", request.workspace_identity});
    for (const auto& root : request.extras.roots)
      add({"--rw", root.path, "--identity", root.identity});
    for (const auto& path : request.extras.pinned) add({"--pin", path});
    for (const auto& path : request.extras.protected_paths) add({"--protect", path});
  }
  for (const auto& path : request.extras.hidden_directories) add({"--hide", path});
  for (const auto& path : request.extras.hidden_files) add({"--hide", path});
  if (!request.extras.network) add({"--no-network"});
  add({"--chdir", request.working_directory, "--"});
  out.insert(out.end(), request.argv.begin(), request.argv.end());

  confined.backend = "namespace";
  confined.enforcement = SandboxEnforcement::full;
  if (host.landlock_abi < kFullLandlockAbi) {
    confined.enforcement = SandboxEnforcement::partial;
    confined.enforcement_reasons = {
        "without Landlock ABI 3 in this kernel, named pipes and devices outside the workspace can "
        "be written to"};
  }
  // The last is what a link or a move from outside into the workspace gets.
  confined.denial_signatures = {"read-only file system", "cross-device link"};
  confined.runner_failure_rules = {{std::vector<int>{125}, {"landlock-run: "}, {}}};
  confined.status_channel = true;
  confined.block_term = true;
  return confined;
}

}  // namespace stockade
