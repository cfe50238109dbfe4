// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "framework/error.hpp"
#include "sandbox/policy.hpp"

namespace stockade {

inline constexpr std::string_view kSandboxUnavailable = "SANDBOX_UNAVAILABLE";

// A confined policy was asked for and nothing can enforce it. Catch Error and compare code(): this
// type is for those who throw it.
class SandboxUnavailableError : public Error {
 public:
  explicit SandboxUnavailableError(ConfinedSandboxMode mode, std::string_view detail = {});
};

// Its text, also for a runner that failed after it was started.
std::string sandbox_unavailable_message(ConfinedSandboxMode mode, std::string_view detail = {});

// `[sandbox: file access denied under read-only mode]`
std::string denial_marker(SandboxMode mode);

}  // namespace stockade
