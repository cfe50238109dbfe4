// SPDX-License-Identifier: MIT
// What the backends of a provider can do on this host, found out by running each of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/task.hpp"
#include "sandbox/policy.hpp"

namespace stockade {

struct BackendReport {
  std::string backend;
  bool usable = false;
  SandboxEnforcement enforcement = SandboxEnforcement::partial;  // of a usable one
  std::vector<std::string> reasons;  // why it is not usable, or what it leaves open
  std::vector<std::string> advice;   // what to do about that, a sentence each
};

struct DoctorReport {
  std::string kernel;                   // release
  unsigned user = 0;                    // effective uid, for which all this holds
  int landlock_abi = 0;                 // 0: none
  std::vector<BackendReport> backends;  // in the order in which they are preferred
  std::string chosen;                   // the first usable one, "" when there is none

  // True when a backend enforces fully, so that a policy which demands that can be served.
  bool healthy() const;
};

// `ctx.sandboxDoctor`, of the plugin that provides `ctx.sandbox`.
class SandboxDoctor {
 public:
  static constexpr std::string_view service = "sandboxDoctor/1";
  virtual ~SandboxDoctor() = default;
  // Runs every backend, whatever was chosen when the provider was opened. Never fails.
  virtual Task<DoctorReport> examine() = 0;
};

}  // namespace stockade
