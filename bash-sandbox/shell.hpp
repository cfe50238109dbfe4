// SPDX-License-Identifier: MIT
// `ctx.shell`: runs bash commands under a policy and says what became of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bash-sandbox/result.hpp"
#include "framework/abort.hpp"
#include "framework/completion.hpp"
#include "framework/process.hpp"
#include "framework/task.hpp"
#include "sandbox/policy.hpp"

namespace stockade {

struct BashRequest {
  std::string command{};
  std::optional<std::string> workdir{};      // relative to the executor's; absent: the executor's
  std::optional<double> timeout_ms{};        // positive; capped by the executor's maximum
  std::optional<double> stdout_max_bytes{};  // positive; raises what is kept of standard output
  std::optional<std::string> input{};        // bytes for standard input; absent: /dev/null
  bool spill = true;                         // false where a sink takes the whole stream anyway
  // Wins over everything but the STOCKADE_… variables of ctx.shellEnvironment.
  std::map<std::string, std::string> environment{};
  std::optional<SandboxExecutionPolicy> policy{};  // absent: resolved by ctx.sandboxPolicy
};

// Fully specified: nothing below this has defaults.
struct BashSpec {
  std::string command;
  std::string workdir;
  std::chrono::milliseconds timeout{0};
  std::size_t stdout_max_bytes = 0;
  std::size_t stderr_max_bytes = 0;
  std::optional<std::string> input;
  bool spill = true;
  std::map<std::string, std::string> environment;
  SandboxExecutionPolicy policy;
};

// Sees a command's output as it comes. Outlives the call.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  virtual void on_output(Stream stream, std::span<const char> bytes) = 0;
  // True: the call stops reading this stream, so that the pipe holds the command back, until it is
  // told otherwise through the function given to `on_resume`.
  virtual bool full(Stream) { return false; }
  virtual void on_resume(std::function<void(Stream)>) {}
};

enum class BashProcessStatus { running, completed, killed };

struct BashRead {
  // What came since the last read: stdout, then `[stderr]` and stderr. While the command runs, a
  // character of which only a part has come waits for the next read.
  std::string output;
  bool lossy = false;  // some of it was dropped from memory
  std::optional<std::string> stdout_spill_path;
  std::optional<std::string> stderr_spill_path;
};

// A command in the background. Dropping the handle kills it.
class BashProcess {
 public:
  virtual ~BashProcess() = default;
  virtual BashProcessStatus status() const = 0;
  virtual BashRead read() = 0;  // valid after the end, too
  virtual bool kill() = 0;      // false when it has ended or was already killed
  virtual Completion<BashResult> done() const = 0;
};

// How busy a Shell is.
struct ShellLoad {
  std::size_t running = 0;     // calls of run()
  std::size_t limit = 0;       // as many may run; 0: no limit
  std::size_t queued = 0;      // wait for a place
  std::size_t background = 0;  // processes of start() that have not ended; they take no place
};

class Shell {
 public:
  static constexpr std::string_view service = "shell/1";
  virtual ~Shell() = default;

  // Throws Error `REQUEST_INVALID` for a command with a NUL byte or too long for the kernel (about
  // 2 MB; less where the stack limit is low), or a number out of range.
  virtual BashSpec resolve(const BashRequest& request) const = 0;

  // Always ends with a result, whatever happens to the runner or the command: at the latest when
  // timeout, grace and a few seconds are over, counted from its start. Before that it may wait for
  // a place, fairly between sessions (`policy.session_id`). Throws what confining throws
  // (SANDBOX_UNAVAILABLE, WORKSPACE_REFUSED, WORKDIR_REFUSED), and SHELL_BUSY when too many wait;
  // then nothing was spawned.
  // `sink` may be null. Hold the service while the task runs; dropping the task kills the command.
  virtual Task<BashResult> run(BashSpec spec, AbortSignal abort, OutputSink* sink) = 0;

  // Throws like run(), at once; a process that cannot be started is a handle that settles as
  // killed.
  virtual std::shared_ptr<BashProcess> start(BashSpec spec, AbortSignal abort) = 0;

  // The deployment's default.
  virtual SandboxMode sandbox_mode() const = 0;

  virtual ShellLoad load() const { return {}; }
};

}  // namespace stockade
