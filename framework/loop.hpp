// SPDX-License-Identifier: MIT
// The libuv loop: one thread owns it and everything on it. Nothing that runs here may block.
#pragma once

#include <chrono>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "framework/api.hpp"
#include "framework/task.hpp"

struct uv_loop_s;

namespace stockade {

class ManualClock;

class STOCKADE_API Loop {
 public:
  // For the whole process: ignores SIGPIPE and SIGXFSZ, which are error values here, gives SIGCHLD
  // its default back where a parent left it ignored, and starts libuv's threads while that cannot
  // fail yet. Throws Error `LOOP_UNAVAILABLE`.
  Loop();
  ~Loop();  // runs until every handle is closed; whoever opened one closes it
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  uv_loop_s* uv() noexcept;

  // Runs `work` on a later turn, in the order of posting, never inside the caller.
  void post(std::function<void()> work);
  // Runs turns until `done()` holds. Throws Error `LOOP_IDLE` when nothing is left that could ever
  // make it hold.
  void run_until(const std::function<bool()>& done);
  // Runs turns until nothing is left to do.
  void drain();

 private:
  friend class ManualClock;
  friend class Timer;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Time that moves only when it is told to, so that what depends on time is tested without sleeping.
// Timers that start on the loop while it lives follow it.
class STOCKADE_API ManualClock {
 public:
  explicit ManualClock(Loop& loop);
  ~ManualClock();
  ManualClock(const ManualClock&) = delete;
  ManualClock& operator=(const ManualClock&) = delete;

  // Fires what comes due in the order of time; before and after each, the loop runs until it is
  // quiet.
  void advance(std::chrono::milliseconds by);

 private:
  Loop& loop_;
};

// One shot, on the loop. Dropping it stops it; its callback never runs inside start().
class STOCKADE_API Timer {
 public:
  explicit Timer(Loop& loop);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void start(std::chrono::milliseconds delay, std::function<void()> callback);
  void stop() noexcept;
  bool running() const noexcept;

 private:
  friend class Loop;
  friend class ManualClock;
  struct State;
  State* state_;  // lives until libuv's close callback
};

// `auto pause = sleep(loop, 5ms); co_await pause;`
STOCKADE_API Task<> sleep(Loop& loop, std::chrono::milliseconds delay);

// Owns running tasks. Dropping the scope cancels what still runs in it; a task that fails is given
// to `on_error`. Started tasks begin on a later turn.
class STOCKADE_API TaskScope {
 public:
  TaskScope(Loop& loop, std::function<void(std::exception_ptr)> on_error);
  ~TaskScope();
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;

  void start(Task<> task);
  // Begins inside the call instead: for what must have happened, as far as it can, on return.
  void start_now(Task<> task);
  std::size_t size() const noexcept;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Runs all at once and ends when all have ended: the error of each, in their order, or null.
STOCKADE_API Task<std::vector<std::exception_ptr>> all_settled(Loop& loop,
                                                               std::vector<Task<>> tasks);

}  // namespace stockade
