// SPDX-License-Identifier: MIT
// SIGINT, SIGTERM and SIGHUP to the host abort what it runs, so that no command is left behind.
#pragma once

#include "framework/abort.hpp"
#include "framework/loop.hpp"

namespace stockade {

class AbortOnSignal {
 public:
  explicit AbortOnSignal(Loop& loop);
  ~AbortOnSignal();
  AbortOnSignal(const AbortOnSignal&) = delete;
  AbortOnSignal& operator=(const AbortOnSignal&) = delete;

  AbortSignal signal() const;
  int caught() const noexcept;  // 0: none
  // Aborts for another cause, which then counts like this signal.
  void abort(int as_signal, const char* reason);

 private:
  struct State;
  State* state_;  // lives until libuv's last close callback
};

}  // namespace stockade
