// SPDX-License-Identifier: MIT
// The end of a stream, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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
  void shrink();  // gives back what more bytes would have needed

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

}  // namespace stockade
