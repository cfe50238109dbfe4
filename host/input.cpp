// SPDX-License-Identifier: MIT
#include "host/input.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <uv.h>

#include <cerrno>
#include <memory>

#include "framework/completion.hpp"
#include "framework/error.hpp"

namespace stockade {

struct Input::Poll {
  explicit Poll(Loop& loop) : ready(loop) {}
  uv_poll_t handle{};
  Completion<> ready;
};

Input::Input(Loop& loop, int fd) : loop_(loop), fd_(fd) {
  auto poll = std::make_unique<Poll>(loop);
  int flags = fcntl(fd_, F_GETFL);
  if (uv_poll_init(loop.uv(), &poll->handle, fd_) != 0) return;
  // libuv has set O_NONBLOCK, on every process that shares standard input.
  if (flags >= 0) fcntl(fd_, F_SETFL, flags);
  poll_ = poll.release();
  poll_->handle.data = poll_;
}

Input::~Input() {
  if (poll_)
    uv_close(reinterpret_cast<uv_handle_t*>(&poll_->handle),
             [](uv_handle_t* handle) { delete static_cast<Poll*>(handle->data); });
}

Task<std::string> Input::read(AbortSignal abort) {
  std::string bytes;
  while (!abort.aborted()) {
    if (poll_) {  // a read after it gives what is there and does not block
      poll_->ready = Completion<>(loop_);
      uv_poll_start(&poll_->handle, UV_READABLE, [](uv_poll_t* handle, int, int) {
        uv_poll_stop(handle);
        static_cast<Poll*>(handle->data)->ready.settle();
      });
      Completion<> ready = poll_->ready;
      AbortSubscription stop = abort.on_abort([ready] { ready.settle(); });
      co_await ready;
      uv_poll_stop(&poll_->handle);
      if (abort.aborted()) break;
    }
    char chunk[65536];
    ssize_t n = ::read(fd_, chunk, sizeof chunk);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0)
      throw Error("INPUT_UNREADABLE", "cannot read standard input: " + describe_errno(errno));
    bytes.assign(chunk, static_cast<std::size_t>(n));
    break;
  }
  co_return bytes;
}

}  // namespace stockade
