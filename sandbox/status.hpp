// SPDX-License-Identifier: MIT
// What a runner reports on descriptor 3 before the command replaces it: proof, not text, of whether
// the command ran. The descriptor closes at exec and the confined child cannot reach it, so nothing
// that a command prints or returns can forge or hide a report.
//
// One JSON object a line: {"status":"ready", …} just before exec; {"status":"refused","message":…}
// when the sandbox could not be set up; {"status":"exec-failed","message":…} after `ready` when
// exec itself failed; {"status":"exited","exitCode":…} or {"status":"signaled","signal":…} when the
// command and all that it started have ended, by the word of its parent, which holds where a runner
// between it and the host knows only 128+n. An empty report means that the runner never got that
// far.
//
// The other direction carries one message: when the read end closes, the runner ends the whole tree
// of the command's processes, those in sessions of their own included, and exits. A host that dies
// sends it too. SIGKILL to the runner is the second means, as it gives the runner no time to do so.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stockade {

inline constexpr int kStatusDescriptor = 3;
inline constexpr std::size_t kMaxStatusBytes = 16384;

struct RunnerStatus {
  bool ready = false;
  std::string failure{};  // "" unless refused or exec-failed
  // How the command ended, at most one; none when the runner was killed before it could tell.
  std::optional<int> exit_code{};
  std::optional<int> signal{};
  std::optional<int> error{};  // errno, where a report of a failure holds it

  // The command ran if and only if this holds once the channel is at its end.
  bool command_ran() const noexcept { return ready && failure.empty(); }

  bool operator==(const RunnerStatus&) const = default;
};

// Reads a report as it comes, each line once. A line that is not one of the above counts as a
// failure: a channel that is not understood proves nothing. What is above kMaxStatusBytes is
// dropped.
class StatusReader {
 public:
  void feed(std::string_view bytes);
  // Of the lines that are whole; null in the middle of one.
  const RunnerStatus* so_far() const { return line_.empty() ? &status_ : nullptr; }
  // At the end of the channel, with what has no newline as a line of its own.
  const RunnerStatus& finish();

 private:
  void read_line(std::string_view line);

  RunnerStatus status_;
  std::string line_;
  std::size_t fed_ = 0;
};

// Of a whole report.
RunnerStatus read_status(std::string_view bytes);

}  // namespace stockade
