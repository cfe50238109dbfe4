// SPDX-License-Identifier: MIT
#include "host/session.hpp"

#include <unistd.h>

namespace stockade {

std::shared_ptr<SessionLog> open_session(Host&, const std::optional<std::string>& id) {
  Session session{id.value_or("host-" + std::to_string(getpid())), std::nullopt, {}};
  return std::make_shared<MemorySession>(std::move(session));
}

}  // namespace stockade
