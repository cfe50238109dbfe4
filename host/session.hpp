// SPDX-License-Identifier: MIT
// The session that the calls of a subcommand belong to.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "host/composition.hpp"
#include "plugins/session.hpp"

namespace stockade {

std::shared_ptr<SessionLog> open_session(Host& host, const std::optional<std::string>& id);

}  // namespace stockade
