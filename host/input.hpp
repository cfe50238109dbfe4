// SPDX-License-Identifier: MIT
// Reading from a descriptor of the host's own as bytes come, without blocking the loop.
#pragma once

#include <string>

#include "framework/abort.hpp"
#include "framework/loop.hpp"
#include "framework/task.hpp"

namespace stockade {

class Input {
 public:
  Input(Loop& loop, int fd);  // fd is borrowed
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // The next bytes; "" at the end, and when `abort` ends the wait. One read at a time. Throws Error
  // `INPUT_UNREADABLE`.
  Task<std::string> read(AbortSignal abort);

 private:
  struct Poll;
  Loop& loop_;
  int fd_;
  Poll* poll_ = nullptr;  // null for what cannot be polled, a regular file; lives until closed
};

}  // namespace stockade
