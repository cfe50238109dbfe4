// SPDX-License-Identifier: MIT
// The `namespace` backend: stockade-launch in namespaces of its own, with everything read-only but
// the workspace, and Landlock on top.
#pragma once

#include "sandbox-local/backend.hpp"

namespace stockade {

ConfinedArgv confine_namespace(const BackendHost& host, const ConfineRequest& request);

}  // namespace stockade
