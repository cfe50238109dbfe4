// SPDX-License-Identifier: MIT
// What a runner reports on descriptor 3 before the command replaces it: proof, not text, of whether
// the command ran. The descriptor closes at exec and the confined child cannot reach it, so nothing
// that a command prints or returns can forge or hide a report.
//
// One JSON object a line: {"status":"ready", …} just before exec; {"status":"refused","message":…}
// when the sandbox could not be set up; {"status":"exec-failed","message":…} after `ready` when
// exec itself failed. An empty report means that the runner never got that far.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stockade {

inline constexpr int kStatusDescriptor = 3;
inline constexpr std::size_t kMaxStatusBytes = 16384;

struct RunnerStatus {
  bool ready = false;
  std::string failure;  // "" unless refused or exec-failed

  // The command ran if and only if this holds once the channel is at its end.
  bool command_ran() const noexcept { return ready && failure.empty(); }
};

// `bytes` is the whole report. A line that is not one of the above counts as a failure: a channel
// that is not understood proves nothing.
RunnerStatus read_status(std::string_view bytes);

}  // namespace stockade
