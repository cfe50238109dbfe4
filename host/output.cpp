// SPDX-License-Identifier: MIT
#include "host/output.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <uv.h>

#include <cerrno>
#include <optional>
#include <string>

namespace stockade {

namespace {
constexpr std::size_t kMaxQueued = 1 << 20;
// A descriptor that polls writable takes this much without blocking (PIPE_BUF); O_NONBLOCK is not
// set, as it would change the descriptor for every process that shares it.
constexpr std::size_t kPiece = 4096;
}  // namespace

struct Output::State {
  explicit State(Loop& l, int descriptor) : loop(l), fd(descriptor) {}
  Loop& loop;
  int fd;
  uv_poll_t poll{};
  bool pollable = false;
  bool broken = false;
  std::string queued;
  std::size_t done = 0;
  std::optional<Completion<>> drained;
  std::function<void()> on_drained;
  std::function<void()> on_broken;
  std::optional<std::chrono::milliseconds> patience;
  std::optional<Timer> stalled;

  std::size_t left() const { return queued.size() - done; }

  bool write_piece(std::size_t most) {
    ssize_t n = ::write(fd, queued.data() + done, std::min(most, left()));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n < 0) {
      broken = true;
      done = queued.size();
      if (on_broken) std::exchange(on_broken, nullptr)();
    } else {
      done += static_cast<std::size_t>(n);
      if (done > kMaxQueued) {
        queued.erase(0, done);
        done = 0;
      }
    }
    return left() > 0;
  }

  void watch() {
    if (!patience || !pollable || left() == 0 || stalled->running()) return;
    stalled->start(*patience, [this] {
      broken = true;
      uv_poll_stop(&poll);
      empty();
    });
  }

  void empty() {
    queued.clear();
    done = 0;
    if (stalled) stalled->stop();
    if (drained) std::exchange(drained, std::nullopt)->settle();
    if (on_drained) on_drained();
  }
};

Output::Output(Loop& loop, int fd) : state_(new State(loop, fd)) {
  int flags = fcntl(fd, F_GETFL);
  state_->pollable = uv_poll_init(loop.uv(), &state_->poll, fd) == 0;  // not for a regular file
  if (state_->pollable && flags >= 0) fcntl(fd, F_SETFL, flags);       // libuv has set O_NONBLOCK
  state_->poll.data = state_;
}

Output::~Output() {
  if (!state_->pollable) {
    delete state_;
    return;
  }
  state_->on_drained = nullptr;
  state_->on_broken = nullptr;
  state_->stalled.reset();
  uv_close(reinterpret_cast<uv_handle_t*>(&state_->poll),
           [](uv_handle_t* handle) { delete static_cast<State*>(handle->data); });
}

void Output::write(std::string_view bytes) {
  if (state_->broken || bytes.empty()) return;
  state_->queued.append(bytes);
  state_->watch();
  if (!state_->pollable) {
    while (state_->write_piece(kMaxQueued)) {
    }
    return state_->empty();
  }
  uv_poll_start(&state_->poll, UV_WRITABLE, [](uv_poll_t* handle, int, int) {
    State& state = *static_cast<State*>(handle->data);
    if (!state.write_piece(kPiece)) {
      uv_poll_stop(handle);
      state.empty();
    }
  });
}

void Output::set_patience(std::chrono::milliseconds patience) {
  state_->patience = patience;
  state_->stalled.emplace(state_->loop);
  state_->watch();
}

bool Output::saturated() const noexcept {
  return state_->left() > kMaxQueued;
}
bool Output::broken() const noexcept {
  return state_->broken;
}

Completion<> Output::drained() const {
  if (!state_->drained) state_->drained.emplace(state_->loop);
  Completion<> completion = *state_->drained;
  if (state_->left() == 0) std::exchange(state_->drained, std::nullopt)->settle();
  return completion;
}

void Output::on_drained(std::function<void()> callback) {
  state_->on_drained = std::move(callback);
}
void Output::on_broken(std::function<void()> callback) {
  state_->on_broken = std::move(callback);
}

}  // namespace stockade
