// SPDX-License-Identifier: MIT
#include "bash-sandbox/spill.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include <cerrno>
#include <cstdlib>

#include "framework/error.hpp"
#include "framework/fd.hpp"

namespace stockade {

namespace {

std::string random_hex() {
  unsigned char bytes[6] = {};
  (void)!getrandom(bytes, sizeof bytes, 0);
  std::string text;
  for (unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace

Fd SpillDirectory::create_file(std::string_view stream, std::string& path, std::string& error) {
  if (!directory_) {
    std::string made = "/var/tmp/stockade-subprocess-XXXXXX";
    if (!mkdtemp(made.data())) {
      error = "cannot create a directory in /var/tmp: " + describe_errno(errno);
      return Fd();
    }
    directory_ = Fd(open(made.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!directory_ || fstat(directory_.get(), &info) != 0 || info.st_uid != geteuid() ||
        (info.st_mode & 0777) != 0700) {
      error = "the directory " + made + " was replaced while it was made";
      directory_.reset();
      return Fd();
    }
    path_ = made;
  }
  std::string name = "stockade-subprocess-" + std::to_string(getpid()) + "-" +
                     std::to_string(++count_) + "-" + random_hex() + "-" + std::string(stream) +
                     ".log";
  path = path_ + "/" + name;
  Fd file(openat(directory_.get(), name.c_str(),
                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) error = "cannot create " + path + ": " + describe_errno(errno);
  return file;
}

struct Spill::State : std::enable_shared_from_this<Spill::State> {
  State(Loop& l, std::shared_ptr<const void> c) : code(std::move(c)), loop(l) {}
  std::shared_ptr<const void> code;  // first, so that it goes last
  Loop& loop;
  Fd file;
  std::string path;
  std::optional<std::string> note;
  std::uint64_t room = 0;  // below the cap
  std::uint64_t written = 0;
  std::string queued;
  std::string writing;
  std::size_t done = 0;  // of `writing`
  uv_fs_t request{};
  std::shared_ptr<State> busy;  // itself, while a request is in flight
  std::function<void()> on_drained;

  void write_next() {
    if (busy || !file || queued.empty()) return;
    writing.swap(queued);
    queued.clear();
    done = 0;
    busy = shared_from_this();
    submit();
  }

  void submit() {
    uv_buf_t buffer =
        uv_buf_init(writing.data() + done, static_cast<unsigned>(writing.size() - done));
    request.data = this;
    uv_fs_write(loop.uv(), &request, file.get(), &buffer, 1, static_cast<std::int64_t>(written),
                [](uv_fs_t* r) { static_cast<State*>(r->data)->completed(); });
  }

  void completed() {
    ssize_t result = request.result;
    uv_fs_req_cleanup(&request);
    if (result > 0) {
      done += static_cast<std::size_t>(result);
      written += static_cast<std::uint64_t>(result);
      if (done < writing.size()) return submit();
    } else {
      note = "spilling ended after " + std::to_string(written) +
             " bytes: " + describe_errno(static_cast<int>(-result));
      queued.clear();
      file.reset();
    }
    writing.clear();
    done = 0;
    auto self = std::exchange(busy, nullptr);
    if (!queued.empty()) return write_next();
    if (on_drained) on_drained();
  }
};

Spill::Spill(Loop& loop, SpillDirectory& directory, std::string_view stream, std::uint64_t cap,
             std::function<void()> on_drained)
    : state_(std::make_shared<State>(loop, directory.code())) {
  state_->room = cap;
  state_->on_drained = std::move(on_drained);
  std::string path;
  std::string error;
  state_->file = directory.create_file(stream, path, error);
  if (state_->file)
    state_->path = path;
  else
    state_->note = "not spilled: " + error;
}

Spill::~Spill() {
  state_->on_drained = nullptr;
}

void Spill::write(std::string_view bytes) {
  State& state = *state_;
  if (!state.file) return;
  if (bytes.size() > state.room) {
    bytes = bytes.substr(0, state.room);
    if (!state.note) state.note = "the spill file ends at its cap";
  }
  state.room -= bytes.size();
  state.queued.append(bytes);
  state.write_next();
}

std::size_t Spill::pending() const noexcept {
  return state_->queued.size() + state_->writing.size() - state_->done;
}

std::optional<std::string> Spill::path() const {
  if (state_->path.empty()) return std::nullopt;
  return state_->path;
}

std::optional<std::string> Spill::note() const {
  return state_->note;
}

}  // namespace stockade
