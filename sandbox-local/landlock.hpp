// SPDX-License-Identifier: MIT
// The `landlock` backend: stockade-launch alone.
#pragma once

#include "sandbox-local/backend.hpp"

namespace stockade {

// `--ro / --rw /dev/null`, in workspace-write `--rw /tmp --rw ROOT` too: the node /dev/null and
// never the directory /dev.
std::vector<std::string> landlock_rules(const SandboxPolicy& policy);

ConfinedArgv confine_landlock(const BackendHost& host, const std::vector<std::string>& argv,
                              const SandboxPolicy& policy);

}  // namespace stockade
