// SPDX-License-Identifier: MIT
// The sessions that the calls of a subcommand belong to.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "host/composition.hpp"
#include "plugins/session.hpp"

namespace stockade {

struct SessionOptions {
  std::optional<std::string> id;  // resumed, or begun, on disk
  bool record = false;            // on disk where that can be, also without an id
  std::string prefix = "host";    // of an id that is made up
};

// With an id: a session whose directory is the workspace, and `composition.mode`, where it is
// given, becomes its mode. Throws what Sessions::open throws. Without one nothing is thrown: a
// session that cannot be recorded lives in memory, and the log says why.
std::shared_ptr<SessionLog> open_session(Host& host, const CompositionOptions& composition,
                                         const SessionOptions& options);

}  // namespace stockade
