// SPDX-License-Identifier: MIT
// The `landlock` backend: stockade-launch with Landlock for contents and names, and seccomp for
// metadata: refused in read-only, performed by the launcher in workspace-write.
#pragma once

#include "sandbox-local/backend.hpp"

namespace stockade {

inline constexpr int kFullLandlockAbi = 3;  // below it truncate(2) is not governed

// `--ro / --rw /dev/null`, in workspace-write `--rw /tmp --rw ROOT` too: the node /dev/null and
// never the directory /dev.
std::vector<std::string> landlock_rules(const BackendHost& host, const SandboxPolicy& policy);

ConfinedArgv confine_landlock(const BackendHost& host, const ConfineRequest& request);

}  // namespace stockade
