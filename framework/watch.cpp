// SPDX-License-Identifier: MIT
#include "framework/watch.hpp"

#include <sys/stat.h>
#include <uv.h>

#include <array>
#include <optional>

#include "framework/error.hpp"

namespace stockade {

namespace {

using Signature = std::array<std::int64_t, 5>;

std::optional<Signature> signature_of(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return Signature{static_cast<std::int64_t>(info.st_dev), static_cast<std::int64_t>(info.st_ino),
                   info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

}  // namespace

struct FileWatch::State {
  uv_fs_event_t handle{};
  std::optional<Timer> timer;
  std::string path;
  std::chrono::milliseconds quiet;
  std::function<void()> changed;
  std::optional<Signature> known;      // of what was told last
  std::optional<Signature> candidate;  // seen once

  // Not restarted by every event: a directory where much happens would put it off for good.
  void look_soon() {
    if (!timer->running()) timer->start(quiet, [this] { look(); });
  }
  void look() {
    const auto now = signature_of(path);
    if (!now || now == known) {
      candidate.reset();
      return;
    }
    if (now != candidate) {
      candidate = now;  // perhaps still being written
      look_soon();
      return;
    }
    candidate.reset();
    known = now;
    changed();
  }
};

FileWatch::FileWatch(Loop& loop, std::string path, std::chrono::milliseconds quiet,
                     std::function<void()> changed)
    : state_(new State) {
  const auto slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "."
                                : slash == 0               ? "/"
                                                           : path.substr(0, slash);
  state_->timer.emplace(loop);
  state_->known = signature_of(path);
  state_->path = std::move(path);
  state_->quiet = quiet;
  state_->changed = std::move(changed);
  state_->handle.data = state_;
  uv_fs_event_init(loop.uv(), &state_->handle);
  // The directory, since a file that is replaced by a rename is another one.
  const int error = uv_fs_event_start(
      &state_->handle,
      [](uv_fs_event_t* handle, const char*, int, int) {
        static_cast<State*>(handle->data)->look_soon();
      },
      directory.c_str(), 0);
  uv_unref(reinterpret_cast<uv_handle_t*>(&state_->handle));
  if (!error) return;
  state_->timer.reset();
  uv_close(reinterpret_cast<uv_handle_t*>(&state_->handle),
           [](uv_handle_t* handle) { delete static_cast<State*>(handle->data); });
  throw Error("WATCH_FAILED", "cannot watch " + directory + ": " + uv_strerror(error), directory);
}

FileWatch::~FileWatch() {
  state_->timer.reset();
  uv_close(reinterpret_cast<uv_handle_t*>(&state_->handle),
           [](uv_handle_t* handle) { delete static_cast<State*>(handle->data); });
}

}  // namespace stockade
