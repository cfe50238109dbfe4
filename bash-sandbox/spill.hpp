// SPDX-License-Identifier: MIT
// The whole of a stream on disk, once it no longer fits in memory. Written by libuv's threads, so that
// a slow disk never blocks the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "framework/loop.hpp"

namespace stockade {

// A private directory (0700) below /var/tmp: not below /tmp, which a sandbox may give to commands.
// Made when the first stream spills; its files stay, since results refer to them.
class SpillDirectory {
 public:
  // A new file's path in it, or absent with `error` set.
  std::optional<std::string> next_file(std::string_view stream, std::string& error);

 private:
  std::string path_;
  std::uint64_t count_ = 0;
};

// One file. Failures (no space, no descriptor) end the spilling with a note and never the call.
class Spill {
 public:
  // `on_drained` is called on the loop each time everything that was given has been written.
  Spill(Loop& loop, SpillDirectory& directory, std::string_view stream, std::uint64_t cap,
        std::function<void()> on_drained);
  ~Spill();  // what is being written is finished and the file closed
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  void write(std::string_view bytes);
  std::size_t pending() const noexcept;  // bytes given but not written
  std::optional<std::string> path() const;
  std::optional<std::string> note() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace stockade
