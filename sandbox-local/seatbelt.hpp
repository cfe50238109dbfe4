// SPDX-License-Identifier: MIT
// The `seatbelt` backend: macOS' sandbox-exec with a profile that forbids writing files.
#pragma once

#include <string_view>

#include "sandbox-local/backend.hpp"

namespace stockade {

inline constexpr std::string_view kSandboxExecMissing =
    "no /usr/bin/sandbox-exec, which only macOS has";

// The profile's text; `roots` may be written, canonical paths, none in read-only. A root is quoted
// as a string of the profile language. Throws Error `WORKSPACE_REFUSED` for one with a control
// character, for which that language has no safe spelling: a profile that breaks in the middle
// could allow what comes after.
std::string seatbelt_profile(const std::vector<std::string>& roots);

ConfinedArgv confine_seatbelt(const BackendHost& host, const ConfineRequest& request);

}  // namespace stockade
