// SPDX-License-Identifier: MIT
// Writing to a descriptor of the host's own without blocking the loop, whoever reads it and however
// slowly.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "framework/completion.hpp"
#include "framework/loop.hpp"

namespace stockade {

// Of a host that was told to stop: who reads still gets the last results, and a reader that has
// stalled does not hold it.
inline constexpr std::chrono::milliseconds kLastPatience{1000};

class Output {
 public:
  Output(Loop& loop, int fd);  // fd is borrowed
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(std::string_view bytes);
  bool saturated() const noexcept;  // more is queued than should be; wait for drained()
  bool broken() const noexcept;     // the reader is gone; what is written is dropped
  // From now on a reader who has not taken all that is queued within this time counts as gone.
  void set_patience(std::chrono::milliseconds patience);
  Completion<> drained() const;  // settles when all that was written has been taken, or is dropped
  void on_drained(std::function<void()> callback);  // each time
  void on_broken(std::function<void()> callback);   // once

 private:
  struct State;
  State* state_;  // lives until libuv's close callback
};

}  // namespace stockade
