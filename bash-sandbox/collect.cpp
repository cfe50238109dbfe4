// SPDX-License-Identifier: MIT
#include "bash-sandbox/collect.hpp"

namespace stockade {

namespace {
constexpr std::size_t kMaxPending = 1 << 20;  // bytes between pipe and disk
}

Collector::Collector(Loop& loop, SpillDirectory& directory, std::string name, std::string workspace,
                     std::size_t cap, std::uint64_t spill_cap, std::function<void()> on_drained)
    : loop_(loop),
      directory_(directory),
      name_(std::move(name)),
      workspace_(std::move(workspace)),
      spill_cap_(spill_cap),
      on_drained_(std::move(on_drained)),
      tail_(cap) {}

void Collector::push(std::string_view bytes) {
  if (!spill_ && spill_cap_ > 0 && tail_.total() + bytes.size() > tail_.cap()) {
    // The last moment at which the tail still holds everything.
    spill_ = std::make_unique<Spill>(loop_, directory_, name_, workspace_, spill_cap_, on_drained_);
    spill_->write(tail_.tail());
  }
  tail_.push(bytes);
  if (spill_) spill_->write(bytes);
}

bool Collector::saturated() const noexcept {
  return spill_ && spill_->pending() > kMaxPending;
}

void Collector::close() {
  if (spill_) spill_->close();
}

void Collector::abandon_spill() {
  if (spill_) spill_->abandon();
}

CapturedStream Collector::captured() const {
  CapturedStream stream;
  stream.bytes = tail_.tail();
  stream.truncated = tail_.truncated();
  stream.total = tail_.total();
  if (spill_) {
    stream.spill_path = spill_->path();
    stream.spill_note = spill_->note();
  }
  return stream;
}

}  // namespace stockade
