// SPDX-License-Identifier: MIT
#include "sandbox/errors.hpp"

namespace stockade {

std::string sandbox_unavailable_message(ConfinedSandboxMode mode, std::string_view detail) {
  std::string text =
      "sandbox mode \"" + to_string(mode) +
      "\" is requested but no sandbox backend is usable on this host; the command was not run. "
      "Install bubblewrap, or use a kernel with Landlock (Linux 5.13 or later); or, if the command "
      "may do anything, choose danger-full-access.";
  if (!detail.empty()) text += " Runner failure: " + std::string(detail);
  return text;
}

SandboxUnavailableError::SandboxUnavailableError(ConfinedSandboxMode mode, std::string_view detail)
    : Error(std::string(kSandboxUnavailable), sandbox_unavailable_message(mode, detail)) {}

std::string denial_marker(SandboxMode mode) {
  return "[sandbox: file access denied under " + to_string(mode) + " mode]";
}

}  // namespace stockade
