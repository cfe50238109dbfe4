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
#include "bash-sandbox/tail.hpp"

namespace stockade {

class Collector {
 public:
  // `spill_cap` in bytes; 0: the stream is not spilled. `workspace` is what the command may write:
  // nothing is spilled to a place inside it.
  Collector(Loop& loop, SpillDirectory& directory, std::string name, std::string workspace,
            std::size_t cap, std::uint64_t spill_cap, std::function<void()> on_drained);

  void push(std::string_view bytes);
  bool saturated() const noexcept;  // the disk is behind; stop reading until on_drained
  // The stream has ended. Once the disk has everything, on_drained is called and flushed() holds.
  void close();
  bool flushed() const noexcept { return !spill_ || spill_->closed(); }
  // Waits for the disk no longer.
  void abandon_spill();
  const TailBuffer& tail() const noexcept { return tail_; }
  CapturedStream captured() const;
  void shrink() { tail_.shrink(); }

 private:
  Loop& loop_;
  SpillDirectory& directory_;
  std::string name_;
  std::string workspace_;
  std::uint64_t spill_cap_;
  std::function<void()> on_drained_;
  TailBuffer tail_;
  std::unique_ptr<Spill> spill_;
};

}  // namespace stockade
