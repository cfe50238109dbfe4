// SPDX-License-Identifier: MIT
// Lines out of a byte stream, however the pipe has cut it, in bounded memory.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace stockade {

class LineFramer {
 public:
  // A line has at most `limit` bytes. `on_line` gets each without its end (LF or CR LF), blank ones
  // left out; `on_overlong` is called once for a line that is longer, which is dropped.
  LineFramer(std::size_t limit, std::function<void(std::string_view)> on_line,
             std::function<void()> on_overlong);

  void feed(std::string_view bytes);
  void finish();  // the stream has ended; a last line needs no newline

 private:
  void append(std::string_view part);
  void end_line(std::string_view rest);

  std::size_t limit_;
  std::function<void(std::string_view)> on_line_;
  std::function<void()> on_overlong_;
  std::string begun_;      // of a line whose end has not come yet
  bool dropping_ = false;  // the rest of a line that is too long
  bool at_start_ = true;   // where a byte order mark may stand
};

}  // namespace stockade
