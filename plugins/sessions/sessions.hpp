// SPDX-License-Identifier: MIT
// `ctx.sessions`: sessions that outlive the host.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "plugins/session.hpp"

namespace stockade {

class Sessions {
 public:
  static constexpr std::string_view service = "sessions/1";
  virtual ~Sessions() = default;
  // The session `id`, resumed with the mode that its log says, or a new one. Throws Error
  // `SESSION_INVALID`, `SESSION_BUSY`, `SESSION_UNWRITABLE`, `SESSION_UNSAFE`. `workspace_root` is
  // what its commands may write.
  virtual std::shared_ptr<SessionLog> open(const std::string& id, std::optional<std::string> cwd,
                                           const std::string& workspace_root) = 0;
};

}  // namespace stockade
