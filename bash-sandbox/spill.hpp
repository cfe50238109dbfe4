// SPDX-License-Identifier: MIT
// The whole of a stream on disk, once it no longer fits in memory. Its bytes are written by libuv's
// threads, so that a slow disk does not hold up the loop; only creating the file happens on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "framework/fd.hpp"
#include "framework/loop.hpp"

namespace stockade {

// A private directory (0700) below /var/tmp: not below /tmp, which a sandbox may give to commands.
// Made when the first stream spills; its files stay, since results refer to them.
class SpillDirectory {
 public:
  explicit SpillDirectory(std::shared_ptr<const void> code = nullptr) : code_(std::move(code)) {}

  // A new file in it, created exclusively with mode 0600; on failure none, with `error` set. By
  // descriptor: a command whose workspace holds the directory may put another in its place.
  Fd create_file(std::string_view stream, std::string& path, std::string& error);
  // Keeps the library mapped that writes in flight call back into.
  const std::shared_ptr<const void>& code() const noexcept { return code_; }

 private:
  Fd directory_;
  std::string path_;
  std::uint64_t count_ = 0;
  std::shared_ptr<const void> code_;
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
