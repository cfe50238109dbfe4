// SPDX-License-Identifier: MIT
// What this host can do, found out by doing it: a probe runs a backend's real argv and looks at the
// host afterwards.
#pragma once

#include <chrono>
#include <string>

#include "framework/loop.hpp"
#include "framework/task.hpp"
#include "sandbox-local/backend.hpp"

namespace stockade {

// Reads the kernel's and the file system's answers; spawns nothing.
BackendHost inspect_host();

struct ProbeVerdict {
  bool usable = false;              // an allowed write landed and a forbidden one did not
  bool metadata_protected = false;  // nor did a forbidden chmod
  std::string reason;               // why it is not usable
};

// Ends within `timeout`. Works in a scratch directory that it removes.
Task<ProbeVerdict> probe_backend(Loop& loop, Backend backend, BackendHost host,
                                 std::chrono::milliseconds timeout);

}  // namespace stockade
