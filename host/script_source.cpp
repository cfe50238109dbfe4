// SPDX-License-Identifier: MIT
#include "host/script_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include <cerrno>

#include "framework/completion.hpp"
#include "framework/error.hpp"

namespace stockade {

struct ScriptSource::Poll {
  explicit Poll(Loop& loop) : ready(loop) {}
  uv_poll_t handle{};
  Completion<> ready;
};

namespace {
Error unreadable(const std::string& path, int error) {
  return Error("SCRIPT_UNREADABLE", "cannot read the script " + path + ": " + describe_errno(error),
               path);
}
}  // namespace

ScriptSource::ScriptSource(Loop& loop, const std::string& path) : loop_(loop), path_(path) {
  if (path != "-") {
    file_ = Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_) throw unreadable(path, errno);
    fd_ = file_.get();
  }
  struct stat info {};
  if (fstat(fd_, &info) != 0) throw unreadable(path, errno);
  if (S_ISDIR(info.st_mode)) throw unreadable(path, EISDIR);
  auto poll = std::make_unique<Poll>(loop);
  int flags = fcntl(fd_, F_GETFL);
  if (uv_poll_init(loop.uv(), &poll->handle, fd_) == 0) {
    // libuv has set O_NONBLOCK, on every process that shares standard input.
    if (flags >= 0) fcntl(fd_, F_SETFL, flags);
    poll_ = poll.release();
    poll_->handle.data = poll_;
  }
}

ScriptSource::~ScriptSource() {
  if (poll_)
    uv_close(reinterpret_cast<uv_handle_t*>(&poll_->handle),
             [](uv_handle_t* handle) { delete static_cast<Poll*>(handle->data); });
}

// A read after this gives what is there and does not block.
Task<> ScriptSource::readable(AbortSignal abort) {
  if (!poll_) co_return;
  poll_->ready = Completion<>(loop_);
  uv_poll_start(&poll_->handle, UV_READABLE, [](uv_poll_t* handle, int, int) {
    uv_poll_stop(handle);
    static_cast<Poll*>(handle->data)->ready.settle();
  });
  Completion<> ready = poll_->ready;
  AbortSubscription stop = abort.on_abort([ready] { ready.settle(); });
  co_await ready;
  uv_poll_stop(&poll_->handle);
}

void ScriptSource::read_some() {
  char chunk[65536];
  ssize_t n = read(fd_, chunk, sizeof chunk);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n < 0) throw unreadable(path_, errno);
  if (n == 0) ended_ = true;
  buffer_.append(chunk, static_cast<std::size_t>(n));
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
    auto waiting = readable(abort);
    co_await waiting;
    if (abort.aborted()) co_return std::nullopt;
    read_some();
  }
  co_return line;
}

}  // namespace stockade
