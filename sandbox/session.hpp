// SPDX-License-Identifier: MIT
// What the sandbox needs of a session: its identity, its immutable working directory, and the
// events that changed its mode.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stockade {

enum class SandboxMode;

struct SessionEvent {
  std::string type;
  std::string mode;  // of a `sandbox/mode` event
};

struct Session {
  std::string id;
  std::optional<std::string> cwd;  // never changes
  std::vector<SessionEvent> events;
};

inline constexpr std::string_view kSandboxModeEvent = "sandbox/mode";

// Appends exactly one event.
void switch_mode(Session& session, SandboxMode mode);
// Of the last `sandbox/mode` event, absent without one. Throws Error `SESSION_INVALID` for a mode
// that does not exist: a forged or damaged log must not widen anything.
std::optional<SandboxMode> session_mode(const Session& session);

}  // namespace stockade
