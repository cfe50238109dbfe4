// SPDX-License-Identifier: MIT
// The `bwrap` backend: a hardened bubblewrap with stockade-launch as its last step inside, which
// closes descriptors, adds Landlock and reports on the status channel.
#pragma once

#include <string_view>

#include "sandbox-local/backend.hpp"

namespace stockade {

inline constexpr std::string_view kBwrapMissing =
    "no trusted bwrap in /usr/bin, /bin or /usr/local/bin; install bubblewrap";

// The profile that a custom runner gets: bubblewrap's plain one, whose words and order are a
// contract
// (`/tmp` before the workspace, so that a workspace below /tmp stays visible).
std::vector<std::string> plain_bwrap_profile(const SandboxPolicy& policy);

ConfinedArgv confine_bwrap(const BackendHost& host, const ConfineRequest& request);

}  // namespace stockade
