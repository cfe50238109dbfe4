// SPDX-License-Identifier: MIT
// What a backend is: a name, and how a policy becomes an argv. Pure; no I/O, no kernel.
#pragma once

#include <string>
#include <vector>

#include "sandbox/confined.hpp"

namespace stockade {

enum class Backend { bwrap, landlock };

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
};

}  // namespace stockade
