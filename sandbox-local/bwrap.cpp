// SPDX-License-Identifier: MIT
#include "sandbox-local/bwrap.hpp"

#include "sandbox/roots.hpp"
#include "sandbox/status.hpp"

namespace stockade {

std::vector<std::string> plain_bwrap_profile(const SandboxPolicy& policy) {
  std::vector<std::string> profile{"--ro-bind", "/",     "/",
                                   "--dev",     "/dev",  "--unshare-pid",
                                   "--proc",    "/proc", "--die-with-parent"};
  if (writes_workspace(policy))
    profile.insert(profile.end(),
                   {"--tmpfs", "/tmp", "--bind", policy.workspace_root, policy.workspace_root});
  return profile;
}

ConfinedArgv confine_bwrap(const BackendHost& host, const ConfineRequest& request) {
  const SandboxPolicy& policy = request.policy;
  const ConfineExtras& extras = request.extras;
  ConfinedArgv confined;
  auto& out = confined.argv;
  auto add = [&out](std::initializer_list<std::string> words) {
    out.insert(out.end(), words.begin(), words.end());
  };

  add({host.bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc",
       "--unshare-ipc", "--die-with-parent"});
  // bwrap leaves uid 0 every capability, and with them `mount -o remount,rw`. What is added back is
  // what writing a workspace of another owner needs.
  add({"--cap-drop", "ALL"});
  if (host.root)
    add({"--cap-add", "CAP_CHOWN", "--cap-add", "CAP_DAC_OVERRIDE", "--cap-add", "CAP_FOWNER",
         "--cap-add", "CAP_FSETID",
         // euid 0 alone may write /proc/sys/kernel/core_pattern, code that the host runs as root,
         // and change the permissions of entries of /proc, which all its mounts share.
         "--remount-ro", "/proc"});
  if (writes_workspace(policy)) {
    // Python's multiprocessing needs a writable /dev/shm; the rest of the private /dev is closed.
    add({"--tmpfs", "/dev/shm", "--remount-ro", "/dev"});
    if (!request.tmp.empty()) add({"--bind", request.tmp, "/tmp"});
    // An installation below /tmp would be hidden, and with it the last step.
    if (is_within(host.launcher, "/tmp")) add({"--ro-bind", host.launcher, host.launcher});
    add({"--bind", policy.workspace_root, policy.workspace_root});
    for (const auto& root : extras.roots) add({"--bind", root.path, root.path});
    for (const auto& path : extras.pinned) add({"--bind", path, path});
    for (const auto& path : extras.protected_paths) add({"--ro-bind", path, path});
  } else {
    add({"--remount-ro", "/dev"});
  }
  for (const auto& path : extras.hidden_directories) add({"--tmpfs", path, "--remount-ro", path});
  for (const auto& path : extras.hidden_files) add({"--ro-bind", "/dev/null", path});
  if (!extras.network) add({"--unshare-net"});
  add({"--chdir", request.working_directory, "--"});

  add({host.launcher, "--stub", "--status-fd", std::to_string(kStatusDescriptor), "--ro", "/"});
  // /dev here is private to the sandbox, its terminals included.
  for (const char* sink : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
                           "/dev/tty", "/dev/ptmx", "/dev/pts"})
    add({"--rw", sink});
  if (writes_workspace(policy)) {
    add({"--rw", "/dev/shm"});
    // bwrap follows a link that was put in the place of a directory that was checked; the last step
    // sees then that it is another.
    if (!request.tmp.empty()) add({"--rw", "/tmp", "--identity", request.tmp_identity});
    add({"--rw", policy.workspace_root, "--identity", request.workspace_identity});
    for (const auto& root : extras.roots) add({"--rw", root.path, "--identity", root.identity});
  }
  add({"--"});
  out.insert(out.end(), request.argv.begin(), request.argv.end());

  confined.backend = "bwrap";
  confined.enforcement = SandboxEnforcement::full;
  if (host.root)
    confined.enforcement_reasons.push_back(
        "as root, permissions and times of the host's /dev/null and the devices beside it can be "
        "changed");
  if (host.landlock_abi == 0)
    confined.enforcement_reasons.push_back(
        "without Landlock in this kernel, named pipes outside the workspace can be written to");
  if (host.shared_mounts)
    confined.enforcement_reasons.push_back(
        "/ is a shared mount: metadata of file systems that the host mounts while the command runs "
        "can be changed");
  if (!confined.enforcement_reasons.empty()) confined.enforcement = SandboxEnforcement::partial;
  // The last is what a link or a move from outside into the workspace gets.
  confined.denial_signatures = {"read-only file system", "cross-device link"};
  confined.runner_failure_rules = {{std::nullopt, {"bwrap: "}, {}}};
  confined.status_channel = true;
  confined.block_term = true;
  return confined;
}

}  // namespace stockade
