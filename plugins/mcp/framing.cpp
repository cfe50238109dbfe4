// SPDX-License-Identifier: MIT
#include "plugins/mcp/framing.hpp"

#include <utility>

namespace stockade {

LineFramer::LineFramer(std::size_t limit, std::function<void(std::string_view)> on_line,
                       std::function<void()> on_overlong)
    : limit_(limit), on_line_(std::move(on_line)), on_overlong_(std::move(on_overlong)) {}

void LineFramer::append(std::string_view part) {
  if (dropping_) return;
  if (begun_.size() + part.size() <= limit_) {
    begun_.append(part);
    return;
  }
  dropping_ = true;
  begun_.clear();
  begun_.shrink_to_fit();
  on_overlong_();
}

void LineFramer::end_line(std::string_view rest) {
  std::string joined;
  if (!begun_.empty() || dropping_) {
    append(rest);
    if (std::exchange(dropping_, false)) return;
    joined = std::exchange(begun_, {});
    rest = joined;
  } else if (rest.size() > limit_) {
    return on_overlong_();
  }
  if (std::exchange(at_start_, false) && rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  if (rest.find_first_not_of(" \t") != std::string_view::npos) on_line_(rest);
}

void LineFramer::feed(std::string_view bytes) {
  for (;;) {
    std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) return append(bytes);
    end_line(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
  }
}

void LineFramer::finish() {
  if (!begun_.empty() || dropping_) end_line({});
}

}  // namespace stockade
