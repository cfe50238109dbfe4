// SPDX-License-Identifier: MIT
#include "bash-sandbox/tail.hpp"

namespace stockade {

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

void TailBuffer::shrink() {
  kept_ = std::string(tail());
  kept_.shrink_to_fit();
}

}  // namespace stockade
