// SPDX-License-Identifier: MIT
// What became of one call. Outcomes are values; nothing here is thrown.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/policy.hpp"

namespace stockade {

// ok: it ran and exited with 0. failed: it ran and did not, or the request itself was at fault.
// denied: it ran, failed, and its output shows that the sandbox stopped a file effect.
// runner_failed: the sandbox broke or refused; the command did not run. timed_out, aborted: ended
// from outside before it ended itself.
enum class BashOutcome { ok, failed, denied, runner_failed, timed_out, aborted };

struct CapturedStream {
  std::string bytes;                      // what is kept: all, or the last of it
  bool truncated = false;                 // bytes were dropped from memory
  std::uint64_t total = 0;                // bytes that the command wrote
  std::optional<std::string> spill_path;  // a file with the whole stream, up to its cap
  std::optional<std::string> spill_note;  // why there is none, or why it is not whole
};

struct SandboxFacts {
  SandboxMode mode = SandboxMode::read_only;
  std::optional<std::string> backend;  // absent under danger-full-access, as enforcement
  std::optional<SandboxEnforcement> enforcement;
  bool denied = false;
  bool runner_failed = false;
  // Whether the command ran: proven either way, or unknown (a custom runner without a status
  // channel).
  std::optional<bool> ran;
  std::optional<std::string>
      evidence;  // the line of output that `denied` or `runner_failed` rests on
};

struct CallError {
  std::string code;
  std::string message;
};

struct BashResult {
  BashOutcome outcome = BashOutcome::failed;
  std::optional<int> exit_code;  // at most one of both is set
  std::optional<int> signal;
  bool timed_out = false;
  bool aborted = false;
  std::chrono::milliseconds timeout{0};
  CapturedStream out;
  CapturedStream err;
  SandboxFacts sandbox;
  std::chrono::milliseconds queued{0};  // before it was started, for want of a free place
  std::chrono::milliseconds duration{0};
  std::vector<std::string> notes;  // what else the caller should know, a sentence each
  std::optional<CallError> error;  // when the command was not run, or not for certain
};

std::string to_string(BashOutcome outcome);  // `runner-failed`
std::string signal_name(int signal);         // `SIGTERM`

// What is kept of a stream as valid UTF-8; a tail begins with a whole character.
std::string text_of(const CapturedStream& stream);

// The result of a call that threw instead: infrastructure failed and nothing ran.
BashResult failure_result(const std::exception_ptr& error, SandboxMode mode);

// The machine-readable form that `exec --json` and tool results share; text is valid UTF-8.
nlohmann::ordered_json to_json(const BashResult& result);

}  // namespace stockade
