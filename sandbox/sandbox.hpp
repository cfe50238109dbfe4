// SPDX-License-Identifier: MIT
// `ctx.sandbox`: turns an argv into one that is confined on this host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sandbox/confined.hpp"
#include "sandbox/policy.hpp"

namespace stockade {

class SandboxProvider {
 public:
  static constexpr std::string_view service = "sandbox/1";
  virtual ~SandboxProvider() = default;

  // Never blocks and never spawns. `working_directory` (absolute) is where the command must find
  // itself inside. Throws SandboxUnavailableError when no backend can confine it, Error
  // `WORKSPACE_REFUSED` or `WORKDIR_REFUSED` when this root or directory cannot be used. Never
  // returns an argv that would run unconfined.
  virtual ConfinedArgv confine(const std::vector<std::string>& argv, const SandboxPolicy& policy,
                               const std::string& working_directory) = 0;
};

}  // namespace stockade
