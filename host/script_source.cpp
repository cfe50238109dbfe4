// SPDX-License-Identifier: MIT
#include "host/script_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "framework/error.hpp"

namespace stockade {

namespace {
Error unreadable(const std::string& path, const std::string& why) {
  return Error("SCRIPT_UNREADABLE", "cannot read the script " + path + ": " + why, path);
}
}  // namespace

ScriptSource::ScriptSource(Loop& loop, const std::string& path) : path_(path) {
  int fd = 0;
  if (path != "-") {
    file_ = Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_) throw unreadable(path, describe_errno(errno));
    fd = file_.get();
  }
  struct stat info {};
  if (fstat(fd, &info) != 0) throw unreadable(path, describe_errno(errno));
  if (S_ISDIR(info.st_mode)) throw unreadable(path, describe_errno(EISDIR));
  input_.emplace(loop, fd);
}

bool ScriptSource::take_line(std::optional<std::string>& line) {
  for (;;) {
    std::size_t end = buffer_.find('\n', searched_);
    if (end == std::string::npos) {
      searched_ = buffer_.size();
      if (!discarding_ && buffer_.size() > kMaxScriptLine) {
        line = buffer_.substr(0, kMaxScriptLine + 1);
        discarding_ = true;
        buffer_.clear();
        searched_ = 0;
        return true;
      }
      if (discarding_) {
        buffer_.clear();
        searched_ = 0;
      }
      if (!ended_) return false;
      if (buffer_.empty())
        line.reset();
      else
        line = std::exchange(buffer_, {});
      searched_ = 0;
      return true;
    }
    std::string text = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    searched_ = 0;
    if (std::exchange(discarding_, false)) continue;
    if (text.size() > kMaxScriptLine) text.resize(kMaxScriptLine + 1);
    line = std::move(text);
    return true;
  }
}

Task<std::optional<std::string>> ScriptSource::next_line(AbortSignal abort) {
  std::optional<std::string> line;
  while (!take_line(line)) {
    std::string bytes;
    std::exception_ptr failure;
    try {
      auto reading = input_->read(abort);
      bytes = co_await reading;
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) throw unreadable(path_, describe(failure));
    if (abort.aborted()) co_return std::nullopt;
    if (bytes.empty()) ended_ = true;
    buffer_ += bytes;
  }
  co_return line;
}

}  // namespace stockade
