// SPDX-License-Identifier: MIT
// Lines of a script, from a file or standard input, read as they are wanted and never blocking the
// loop.
#pragma once

#include <optional>
#include <string>

#include "framework/fd.hpp"
#include "framework/loop.hpp"
#include "host/input.hpp"
#include "plugins/script/script.hpp"

namespace stockade {

class ScriptSource final : public LineSource {
 public:
  // `path` is a file, or `-` for standard input. Throws Error `SCRIPT_UNREADABLE` naming it.
  ScriptSource(Loop& loop, const std::string& path);

  Task<std::optional<std::string>> next_line(AbortSignal abort) override;

 private:
  bool take_line(std::optional<std::string>& line);

  std::string path_;
  Fd file_;  // none for standard input
  std::optional<Input> input_;
  std::string buffer_;
  std::size_t searched_ = 0;  // of the buffer, without a newline
  bool discarding_ = false;   // the rest of a line that was too long
  bool ended_ = false;
};

}  // namespace stockade
