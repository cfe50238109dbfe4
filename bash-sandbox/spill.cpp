// SPDX-License-Identifier: MIT
#include "bash-sandbox/spill.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "framework/error.hpp"
#include "framework/fd.hpp"
#include "framework/random.hpp"
#include "sandbox/roots.hpp"

namespace stockade {

namespace {

constexpr const char* kBase = "/var/tmp";
constexpr std::string_view kPrefix = "stockade-subprocess-";
constexpr std::int64_t kStaleAge = 24 * 60 * 60;  // seconds; what `exec` printed may still be read
constexpr int kMostStale = 1000;                  // directories looked at in one go

// The directory itself carries the lock: its kernel object goes with the host, however that dies.
bool lock(const Fd& directory) {
  return flock(directory.get(), LOCK_EX | LOCK_NB) == 0;
}

bool is_private(const Fd& directory, struct stat& info) {
  return directory && fstat(directory.get(), &info) == 0 && info.st_uid == geteuid() &&
         (info.st_mode & 0777) == 0700;
}

// Names in the directory that begin as ours do.
std::vector<std::string> names_in(int directory) {
  std::vector<std::string> names;
  int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = copy >= 0 ? fdopendir(copy) : nullptr;
  if (!stream) {
    if (copy >= 0) ::close(copy);
    return names;
  }
  while (const dirent* entry = readdir(stream))
    if (std::string_view(entry->d_name).starts_with(kPrefix)) names.emplace_back(entry->d_name);
  closedir(stream);
  return names;
}

void empty(const Fd& directory) {
  for (const auto& name : names_in(directory.get())) unlinkat(directory.get(), name.c_str(), 0);
}

// Work for one of libuv's threads, with nothing to wait for it. `code` keeps it mapped.
void on_thread(Loop& loop, std::shared_ptr<const void> code, std::function<void()> work) {
  struct Job {
    std::shared_ptr<const void> code;  // first, so that it goes last
    std::function<void()> work;
    uv_work_t request{};
  };
  auto job = std::make_unique<Job>();
  job->code = std::move(code);
  job->work = std::move(work);
  job->request.data = job.get();
  if (uv_queue_work(
          loop.uv(), &job->request,
          [](uv_work_t* request) { static_cast<Job*>(request->data)->work(); },
          [](uv_work_t* request, int) { delete static_cast<Job*>(request->data); }) == 0)
    job.release();
}

}  // namespace

SpillDirectory::SpillDirectory(Loop& loop, SpillLimits limits, std::shared_ptr<const void> code)
    : loop_(loop), limits_(limits), code_(std::move(code)) {}

SpillDirectory::~SpillDirectory() {
  if (!directory_ || limits_.keep) return;
  // Unlinking a large file takes its time. A write that is still in flight keeps its file open.
  auto directory = std::make_shared<Fd>(std::move(directory_));
  on_thread(loop_, code_, [directory, path = path_] {
    empty(*directory);
    rmdir(path.c_str());
  });
}

void SpillDirectory::remove_stale(Loop& loop, std::shared_ptr<const void> code) {
  on_thread(loop, std::move(code), [] { remove_stale_in(kBase, kStaleAge); });
}

int SpillDirectory::remove_stale_in(const std::string& base, std::int64_t min_age_seconds) {
  Fd parent(open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent) return 0;
  int removed = 0;
  int seen = 0;
  for (const auto& name : names_in(parent.get())) {
    if (++seen > kMostStale) break;
    Fd directory(openat(parent.get(), name.c_str(),
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info {};
    if (!is_private(directory, info) || time(nullptr) - info.st_mtime < min_age_seconds ||
        !lock(directory))
      continue;
    empty(directory);
    if (unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0) ++removed;
  }
  return removed;
}

std::uint64_t SpillDirectory::take(std::uint64_t file, std::uint64_t wanted) {
  for (auto oldest = files_.begin();
       oldest != files_.end() && used_ + wanted > limits_.total_bytes;) {
    if (oldest->in_use) {
      ++oldest;
      continue;
    }
    unlinkat(directory_.get(), oldest->name.c_str(), 0);
    used_ -= oldest->bytes;
    oldest = files_.erase(oldest);
  }
  const std::uint64_t taken = std::min(wanted, limits_.total_bytes - used_);
  for (auto& entry : files_)
    if (entry.id == file) {
      entry.bytes += taken;
      used_ += taken;
      return taken;
    }
  return 0;
}

void SpillDirectory::let_go(std::uint64_t file) noexcept {
  for (auto& entry : files_)
    if (entry.id == file) entry.in_use = false;
}

Fd SpillDirectory::create_file(std::string_view stream, const std::string& workspace,
                               std::string& path, std::string& error) {
  if (!workspace.empty() && is_within(kBase, workspace)) {
    error = kBase;
    error += " lies in the workspace " + workspace;
    return Fd();
  }
  if (!directory_) {
    std::string made = std::string(kBase) + "/" + std::string(kPrefix) + "XXXXXX";
    if (!mkdtemp(made.data())) {
      error = "cannot create a directory in /var/tmp: " + describe_errno(errno);
      return Fd();
    }
    Fd opened(open(made.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!opened && (errno == EMFILE || errno == ENFILE)) {
      error = "cannot open " + made + ": " + describe_errno(errno);
      rmdir(made.c_str());
      return Fd();
    }
    if (!is_private(opened, info) || !lock(opened)) {
      error = "the directory " + made + " was replaced while it was made";
      return Fd();
    }
    directory_ = std::move(opened);
    path_ = made;
  }
  std::string name;
  try {
    name = std::string(kPrefix) + std::to_string(getpid()) + "-" + std::to_string(++count_) + "-" +
           random_hex(6) + "-" + std::string(stream) + ".log";
  } catch (const Error& none) {
    error = none.what();
    return Fd();
  }
  path = path_ + "/" + name;
  Fd file(openat(directory_.get(), name.c_str(),
                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file)
    files_.push_back({count_, name});
  else
    error = "cannot create " + path + ": " + describe_errno(errno);
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
  bool closing = false;
  bool closed = false;
  bool abandoned = false;
  std::function<void()> on_drained;

  void next() {
    if (busy || !file) return;
    if (!queued.empty()) {
      writing.swap(queued);
      queued.clear();
      done = 0;
      busy = shared_from_this();
      submit();
    } else if (closing) {
      busy = shared_from_this();
      request.data = this;
      // The descriptor is gone whatever close says; what it says is whether the bytes arrived.
      uv_fs_close(loop.uv(), &request, file.release(),
                  [](uv_fs_t* r) { static_cast<State*>(r->data)->file_closed(); });
    }
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
    auto self = shared_from_this();
    if (result > 0) {
      done += static_cast<std::size_t>(result);
      written += static_cast<std::uint64_t>(result);
      if (done < writing.size() && !abandoned) return submit();
    } else if (!abandoned) {
      note = "spilling ended after " + std::to_string(written) +
             " bytes: " + describe_errno(static_cast<int>(-result));
      queued.clear();
      file.reset();
      closed = true;
    }
    writing.clear();
    done = 0;
    busy = nullptr;
    if (abandoned) return;
    next();
    if (!busy && on_drained) on_drained();
  }

  void file_closed() {
    ssize_t result = request.result;
    uv_fs_req_cleanup(&request);
    auto self = std::exchange(busy, nullptr);
    if (abandoned) return;
    closed = true;
    if (result < 0) {
      path.clear();
      note = "the spill file was lost when it was closed: " +
             describe_errno(static_cast<int>(-result));
    }
    if (on_drained) on_drained();
  }
};

Spill::Spill(Loop& loop, SpillDirectory& directory, std::string_view stream,
             const std::string& workspace, std::uint64_t cap, std::function<void()> on_drained)
    : directory_(directory), state_(std::make_shared<State>(loop, directory.code())) {
  std::string path;
  std::string error;
  state_->file = directory.create_file(stream, workspace, path, error);
  if (!state_->file) {
    state_->note = "not spilled: " + error;
    state_->closed = true;
    return;
  }
  state_->path = path;
  state_->on_drained = std::move(on_drained);
  state_->room = cap;
  file_ = directory.last_file();
}

Spill::~Spill() {
  state_->on_drained = nullptr;
  directory_.let_go(file_);
}

void Spill::write(std::string_view bytes) {
  State& state = *state_;
  if (!state.file || state.closing || state.abandoned) return;
  if (bytes.size() > state.room) {
    bytes = bytes.substr(0, state.room);
    if (!state.note) state.note = "the spill file ends at its cap";
  }
  if (std::uint64_t taken = directory_.take(file_, bytes.size()); taken < bytes.size()) {
    bytes = bytes.substr(0, taken);
    state.room = bytes.size();
    if (!state.note)
      state.note = "the spill file ends early: all spill files together have reached their cap";
  }
  state.room -= bytes.size();
  state.queued.append(bytes);
  state.next();
}

void Spill::close() {
  if (state_->closed || state_->closing) return;
  state_->closing = true;
  state_->next();
}

void Spill::abandon() {
  State& state = *state_;
  if (state.closed || state.abandoned) return;
  state.note = "spilling was given up after " + std::to_string(state.written) +
               " bytes: the disk did not take the rest in time";
  state.abandoned = true;
  state.closed = true;
  state.on_drained = nullptr;
  state.queued.clear();
}

bool Spill::closed() const noexcept {
  return state_->closed;
}

std::size_t Spill::pending() const noexcept {
  if (state_->abandoned) return 0;
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
