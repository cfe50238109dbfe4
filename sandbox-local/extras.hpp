// SPDX-License-Identifier: MIT
// A policy's extras as they are on this host, and which backends can enforce them.
#pragma once

#include <optional>

#include "sandbox-local/backend.hpp"

namespace stockade {

// What does not exist is left out. Throws Error `WORKSPACE_REFUSED` for a writable root that cannot
// be one, `EXTRAS_REFUSED` for a hidden path that would take the call's own directory away.
ConfineExtras examine_extras(const SandboxPolicy& policy, const std::string& working_directory,
                             const std::vector<std::string>& protected_from_commands);

// What of it `backend` cannot enforce, so that the call must be refused; nothing when all is.
std::optional<std::string> beyond(Backend backend, const ConfineExtras& extras);

}  // namespace stockade
