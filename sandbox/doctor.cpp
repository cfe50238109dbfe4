// SPDX-License-Identifier: MIT
#include "sandbox/doctor.hpp"

namespace stockade {

bool DoctorReport::healthy() const {
  for (const auto& report : backends)
    if (report.usable && report.enforcement == SandboxEnforcement::full) return true;
  return false;
}

}  // namespace stockade
