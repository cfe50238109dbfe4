// SPDX-License-Identifier: MIT
// What is kept of one stream: a bounded tail, an exact count, and a spill once the tail overflows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "bash-sandbox/result.hpp"
#include "bash-sandbox/spill.hpp"

namespace stockade {

// The last `cap` bytes of what was pushed; exactly `cap` bytes are not truncated.
class TailBuffer {
 public:
  explicit TailBuffer(std::size_t cap) : cap_(cap) {}
  void push(std::string_view bytes);
  std::string_view tail() const noexcept;
  std::size_t cap() const noexcept { return cap_; }
  std::uint64_t total() const noexcept { return total_; }
  bool truncated() const noexcept { return total_ > cap_; }

  struct Slice {
    std::string bytes;
    std::uint64_t next = 0;  // the offset to read from next
    bool lossy = false;      // bytes between were dropped
  };
  // What came since `offset`.
  Slice read_from(std::uint64_t offset) const;

 private:
  std::size_t cap_;
  std::uint64_t total_ = 0;
  std::string kept_;  // up to twice the cap, so that dropping the front is cheap on average
};

class Collector {
 public:
  // `spill_cap` in bytes; 0: the stream is not spilled.
  Collector(Loop& loop, SpillDirectory& directory, std::string name, std::size_t cap,
            std::uint64_t spill_cap, std::function<void()> on_drained);

  void push(std::string_view bytes);
  bool saturated() const noexcept;  // the disk is behind; stop reading until on_drained
  bool flushed() const noexcept { return !spill_ || spill_->pending() == 0; }
  const TailBuffer& tail() const noexcept { return tail_; }
  CapturedStream captured() const;

 private:
  Loop& loop_;
  SpillDirectory& directory_;
  std::string name_;
  std::uint64_t spill_cap_;
  std::function<void()> on_drained_;
  TailBuffer tail_;
  std::unique_ptr<Spill> spill_;
};

}  // namespace stockade
