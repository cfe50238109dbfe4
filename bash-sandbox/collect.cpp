// SPDX-License-Identifier: MIT
#include "bash-sandbox/collect.hpp"

namespace stockade {

namespace {
constexpr std::size_t kMaxPending = 1 << 20;  // bytes between pipe and disk
}

void TailBuffer::push(std::string_view bytes) {
  total_ += bytes.size();
  if (bytes.size() > cap_) bytes = bytes.substr(bytes.size() - cap_);
  if (kept_.size() + bytes.size() > 2 * cap_) kept_.erase(0, kept_.size() + bytes.size() - cap_);
  kept_.append(bytes);
}

std::string_view TailBuffer::tail() const noexcept {
  std::string_view all = kept_;
  return all.size() > cap_ ? all.substr(all.size() - cap_) : all;
}

TailBuffer::Slice TailBuffer::read_from(std::uint64_t offset) const {
  std::string_view kept = tail();
  std::uint64_t begin = total_ - kept.size();
  Slice slice;
  slice.next = total_;
  if (offset < begin) {
    slice.lossy = true;
    slice.bytes = kept;
  } else if (offset < total_) {
    slice.bytes = kept.substr(static_cast<std::size_t>(offset - begin));
  }
  return slice;
}

Collector::Collector(Loop& loop, SpillDirectory& directory, std::string name, std::size_t cap,
                     std::uint64_t spill_cap, std::function<void()> on_drained)
    : loop_(loop),
      directory_(directory),
      name_(std::move(name)),
      spill_cap_(spill_cap),
      on_drained_(std::move(on_drained)),
      tail_(cap) {}

void Collector::push(std::string_view bytes) {
  if (!spill_ && spill_cap_ > 0 && tail_.total() + bytes.size() > tail_.cap()) {
    // The last moment at which the tail still holds everything.
    spill_ = std::make_unique<Spill>(loop_, directory_, name_, spill_cap_, on_drained_);
    spill_->write(tail_.tail());
  }
  tail_.push(bytes);
  if (spill_) spill_->write(bytes);
}

bool Collector::saturated() const noexcept {
  return spill_ && spill_->pending() > kMaxPending;
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
