// SPDX-License-Identifier: MIT
// From the end of a process and the evidence to a verdict; pure.
#pragma once

#include <optional>
#include <string>

#include "bash-sandbox/result.hpp"
#include "sandbox/status.hpp"

namespace stockade {

struct Ending {
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool timed_out = false;
  bool aborted = false;
  bool killed = false;  // by BashProcess::kill()
};

struct Evidence {
  bool confined = false;
  std::optional<RunnerStatus> status;      // absent where the runner has no status channel
  std::optional<std::string> fatal_line;   // by which a rule proves a runner failure
  std::optional<std::string> denial_line;  // which holds a denial signature
  // The command was started by a supervisor, which confines nothing: whether it got that far.
  std::optional<bool> supervised_start{};
};

struct Verdict {
  BashOutcome outcome;
  bool denied = false;
  bool runner_failed = false;
  std::optional<bool> ran;
  std::optional<std::string> evidence;
  std::string failure;  // the detail of a runner failure
};

// In this order: the status channel's proof, the end that was forced from outside, the rules of a
// runner without a channel, denial, the ordinary result. A denial needs a nonzero exit code:
// neither success nor death by a signal is one.
Verdict classify(const Ending& ending, const Evidence& evidence);

}  // namespace stockade
