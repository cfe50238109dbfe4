// SPDX-License-Identifier: MIT
// What this host can do, found out by doing it: a probe runs a backend's real argv and looks at the
// host afterwards.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "framework/loop.hpp"
#include "framework/task.hpp"
#include "sandbox-local/backend.hpp"

namespace stockade {

// Reads the kernel's and the file system's answers; spawns nothing.
BackendHost inspect_host();

struct ProbeVerdict {
  bool usable = false;                       // an allowed write landed and a forbidden one did not
  bool metadata_protected = false;           // nor did a forbidden chmod
  bool transient = false;                    // the reason may be gone soon: no resources, no time
  std::string reason;                        // why it is not usable
  std::vector<std::string> partial_reasons;  // what it leaves open, a sentence each

  bool full() const { return usable && partial_reasons.empty(); }
};

// The argv of a backend. Throws Error `SANDBOX_UNAVAILABLE` for one that does not exist.
ConfinedArgv confine_with(Backend backend, const BackendHost& host, const ConfineRequest& request);

// Why a backend has no program to run on this host, nothing when it has one.
std::optional<std::string> missing_runner(Backend backend, const BackendHost& host);

// Ends within `timeout`. Works in a scratch directory that it removes.
Task<ProbeVerdict> probe_backend(Loop& loop, Backend backend, BackendHost host,
                                 std::chrono::milliseconds timeout);

}  // namespace stockade
