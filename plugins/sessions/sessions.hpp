// SPDX-License-Identifier: MIT
// `ctx.sessions`: sessions that outlive the host.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/session.hpp"

namespace stockade {

class Sessions {
 public:
  static constexpr std::string_view service = "sessions/1";
  virtual ~Sessions() = default;
  // The session `id`, resumed with the mode that its log says, or a new one. Throws Error
  // `SESSION_INVALID`, `SESSION_BUSY`, `SESSION_UNWRITABLE`, `SESSION_UNSAFE`. Commands of
  // the session may write `writable_roots`; the first is the workspace, and its directory where
  // `cwd` is absent and the session is new.
  virtual std::shared_ptr<SessionLog> open(const std::string& id, std::optional<std::string> cwd,
                                           const std::vector<std::string>& writable_roots) = 0;
};

}  // namespace stockade
