// SPDX-License-Identifier: MIT
// One child process on the loop: started without forking the host, watched, never left behind.
// A passive core: it reports what happened to an observer and decides nothing. `sandbox-local` uses
// it for probes, `bash-sandbox` for commands.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "framework/api.hpp"

namespace stockade {

class Loop;

struct SpawnRequest {
  // argv[0] with a slash is a path; else it is looked for in the absolute directories of the host's
  // PATH, and never in the working directory.
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // the whole block, `NAME=value`
  std::string working_directory;         // absolute
  std::optional<std::string> input;      // bytes for standard input; absent: /dev/null
  // A pipe to the host on descriptor 3. It is a leash as well: a child that keeps its end open ends
  // itself, with all that it started, when the host's end closes.
  bool status_channel = false;
  bool block_term = false;  // SIGTERM is blocked in the child until it unblocks it
};

// Which step failed decides whose fault it is; the kernel gives one errno for several.
enum class SpawnStep { working_directory, resources, program };

struct STOCKADE_API SpawnError {
  SpawnStep step;
  int error;            // errno
  std::string operand;  // the directory, the program, or the resource
  std::string message() const;
};

// At most one is set; none where somebody else reaped the child. A signal is only reported where
// the kernel reported one of this child itself.
struct ExitStatus {
  std::optional<int> code;
  std::optional<int> signal;
};

enum class Stream { output, error, status };  // descriptors 1, 2, 3

class STOCKADE_API ProcessObserver {
 public:
  virtual ~ProcessObserver() = default;
  virtual void on_data(Stream stream, std::span<const char> bytes) = 0;
  virtual void on_end(Stream stream) = 0;       // once a stream, at end of file or close_streams()
  virtual void on_exit(ExitStatus status) = 0;  // once
  // Instead of on_exit(): the child could not execute its program. The streams end as well.
  virtual void on_failed(SpawnError error) = 0;
};

// The child leads a session of its own with default signal dispositions, an empty signal mask and
// no descriptor but 0, 1, 2 (and 3). Callbacks never run inside spawn(). Dropping a Process that
// has not exited ends its tree as end_tree() does; the loop still reaps it.
class STOCKADE_API Process {
 public:
  using Spawned = std::variant<std::unique_ptr<Process>, SpawnError>;
  // Does not wait for the child, which on its way to its program may have to: the processor may be
  // busy, the working directory on a network file system that is gone. The error is a lack of
  // resources in the host; all others come by on_failed().
  static Spawned spawn(Loop& loop, SpawnRequest request, ProcessObserver& observer);

  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int pid() const noexcept;
  // To the whole process group. Until reap() no other process can get its id, so this never
  // reaches a stranger, not even after the exit of the leader.
  void signal_group(int signal) noexcept;
  // Ends the child and what it started, without a chance to clean up. A child that still holds its
  // end of the status channel owns its tree: it is told by closing ours, since killing it would set
  // free what has left its group, and killed only when it has not ended kLeashLimit later. Any
  // other is killed with its group at once.
  void end_tree() noexcept;
  static constexpr int kLeashLimit = 1000;  // ms
  // Takes the zombie away once on_exit() was called; until then it guards the group's id.
  void reap() noexcept;
  void pause(Stream stream) noexcept;  // stop reading, so that a full pipe holds the child back
  void resume(Stream stream) noexcept;
  bool paused(Stream stream) const noexcept;
  void close_stream(Stream stream) noexcept;
  void close_streams() noexcept;
  // Hands over what the pipe holds now and ends the stream, without waiting for who may still keep
  // it open. Does neither to a stream that is paused, or that on_data() pauses meanwhile.
  void take_rest(Stream stream);

 private:
  struct State;
  explicit Process(State* state) noexcept : state_(state) {}
  State* state_;  // lives until libuv's last close callback
};

}  // namespace stockade
