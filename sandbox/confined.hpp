// SPDX-License-Identifier: MIT
// What a consumer spawns in place of its own argv, and how to read what comes back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sandbox/policy.hpp"

namespace stockade {

// Evidence that a sandbox runner failed before it executed the command. It holds when the exit
// status is nonzero and within `allowed_exit_codes` (absent: any), and a line of stderr that equals
// none of `informational_lines` contains one of `fatal_signatures`; all comparisons ignore case,
// blank signatures never match. An exit status alone proves nothing.
struct RunnerFailureRule {
  std::optional<std::vector<int>> allowed_exit_codes{};
  std::vector<std::string> fatal_signatures{};
  std::vector<std::string> informational_lines{};
};

struct ConfinedArgv {
  std::vector<std::string> argv;  // runner, profile, separator, then the caller's argv
  SandboxEnforcement enforcement = SandboxEnforcement::partial;
  // The dialect of this backend: case-insensitive substrings that a denied effect leaves on stderr.
  // Only this backend's, since a union would claim denials that it never produces.
  std::vector<std::string> denial_signatures{};
  // Checked before denials: a runner's own error may contain denial words.
  std::vector<RunnerFailureRule> runner_failure_rules{};

  // Beside the seeds' fields:
  std::string backend{};  // `namespace`, `bwrap`, `landlock`, `seatbelt`, `custom`
  std::vector<std::string> enforcement_reasons{};  // why it is partial, a sentence each
  // The runner reports on descriptor 3 (sandbox/status.hpp). With it the rules above are not needed
  // to tell a runner that failed from a command that did; and to close its read end is how the tree
  // of the command's processes is ended, before SIGKILL to the runner.
  bool status_channel = false;
  // The runner stays between the host and the command and must outlive a SIGTERM to their group, so
  // that the command's own traps run: start it with SIGTERM blocked; its last step unblocks it.
  bool block_term = false;
};

}  // namespace stockade
