// SPDX-License-Identifier: MIT
// What a backend is: a name, and how a policy becomes an argv. Pure; no I/O, no kernel.
#pragma once

#include <string>
#include <vector>

#include "sandbox/confined.hpp"

namespace stockade {

enum class Backend { namespace_, bwrap, landlock, seatbelt };

// The facts about this host that an argv depends on.
struct BackendHost {
  std::string launcher;  // absolute path of stockade-launch
  std::string bwrap;     // absolute path of bwrap, "" when there is none
  // What runs outside the sandbox, or decides about it, and so must not be writable from inside:
  // this installation, the host's executable, bwrap.
  std::vector<std::string> protected_paths;
  bool root = false;     // effective uid 0
  int landlock_abi = 0;  // 0: none
  // Mounts made on the host later show up inside a sandbox whose `/` is a shared mount.
  bool shared_mounts = false;
  std::string sandbox_exec{};  // absolute path of sandbox-exec, "" when there is none
  // Canonical; what a backend without a private /tmp gives away in workspace-write.
  std::vector<std::string> temporary_areas{"/tmp"};
};

// A policy's extras as they are on this host.
struct ConfineExtras {
  struct Root {
    std::string path;
    std::string identity;
  };
  std::vector<Root> roots{};          // written like the workspace
  std::vector<std::string> pinned{};  // may not be renamed; parents before children
  std::vector<std::string> protected_paths{};
  std::vector<std::string> hidden_directories{};
  std::vector<std::string> hidden_files{};
  bool network = true;
};

// What one call adds to it.
struct ConfineRequest {
  std::vector<std::string> argv;
  SandboxPolicy policy;
  std::string working_directory;  // canonical
  // What the workspace was when it was checked (file_identity); the runner refuses another one.
  std::string workspace_identity;
  // Directory of the host that stands at /tmp in workspace-write, "" where the backend needs none.
  std::string tmp;
  std::string tmp_identity{};
  ConfineExtras extras{};
};

inline bool writes_workspace(const SandboxPolicy& policy) {
  return policy.mode == ConfinedSandboxMode::workspace_write;
}

// True when `directory` is outside what a sandbox with a private /tmp shows: below /tmp, which it
// covers in workspace-write, and not in the workspace.
bool hidden_by_private_tmp(const SandboxPolicy& policy, const std::string& directory);

}  // namespace stockade
