// SPDX-License-Identifier: MIT
// Runs a task to its end on a loop, within a limit.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>

#include "framework/loop.hpp"
#include "framework/task.hpp"

namespace stockade::test {

inline constexpr std::chrono::seconds kAwaitLimit{60};

// Runs the loop until `done()` holds, which may look at things outside of the loop; false when that
// took too long.
inline bool wait_until(Loop& loop, const std::function<bool()>& done,
                       std::chrono::milliseconds limit = kAwaitLimit) {
  bool late = false;
  Timer deadline(loop);
  deadline.start(limit, [&late] { late = true; });
  Timer tick(loop);
  std::function<void()> again = [&] { tick.start(std::chrono::milliseconds(10), again); };
  again();
  bool reached = false;
  loop.run_until([&] { return late || (reached = done()); });
  return reached;
}

// Runs the loop for about that long.
inline void run_for(Loop& loop, std::chrono::milliseconds time) {
  wait_until(
      loop, [] { return false; }, time);
}

template <class T>
Task<> store_value(Task<T> task, std::optional<T>* value) {
  T result = co_await task;
  value->emplace(std::move(result));
}

template <class T>
T await_task(Loop& loop, Task<T> task) {
  std::optional<T> value;
  std::exception_ptr error;
  TaskScope scope(loop, [&error](std::exception_ptr failure) { error = failure; });
  scope.start(store_value(std::move(task), &value));
  if (!wait_until(loop, [&] { return value || error; }))
    throw std::runtime_error("the task did not end in time");
  if (error) std::rethrow_exception(error);
  return std::move(*value);
}

}  // namespace stockade::test
