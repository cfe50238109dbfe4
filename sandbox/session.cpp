// SPDX-License-Identifier: MIT
#include "sandbox/session.hpp"

#include "framework/error.hpp"
#include "sandbox/policy.hpp"

namespace stockade {

void switch_mode(Session& session, SandboxMode mode) {
  session.events.push_back({std::string(kSandboxModeEvent), to_string(mode)});
}

std::optional<SandboxMode> session_mode(const Session& session) {
  std::optional<SandboxMode> last;
  for (const auto& event : session.events) {
    if (event.type != kSandboxModeEvent) continue;
    last = parse_mode(event.mode);
    if (!last)
      throw Error("SESSION_INVALID", "sandbox/mode carries unknown mode \"" + event.mode + "\"",
                  session.id);
  }
  return last;
}

}  // namespace stockade
