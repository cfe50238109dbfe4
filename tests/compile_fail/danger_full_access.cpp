// SPDX-License-Identifier: MIT
// Compiled with MODE as each of several modes; see tests/sandbox/CMakeLists.txt.
#include "sandbox/policy.hpp"

stockade::SandboxPolicy policy() {
  return stockade::SandboxPolicy{MODE, "/ws"};
}
