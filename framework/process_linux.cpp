// SPDX-License-Identifier: MIT
// posix_spawn and a pidfd. uv_spawn forks the whole host, which costs 0.1 s for each GiB that it
// has resident, and then blocks the loop until exec; posix_spawn shares the memory and costs the
// same always.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "framework/error.hpp"
#include "framework/fd.hpp"
#include "framework/loop.hpp"
#include "framework/process.hpp"

namespace stockade {

std::string SpawnError::message() const {
  switch (step) {
    case SpawnStep::working_directory:
      return "cannot enter the working directory " + operand + ": " + describe_errno(error);
    case SpawnStep::resources:
      return "cannot start a process: " + operand + ": " + describe_errno(error);
    case SpawnStep::program:
      return "cannot execute " + operand + ": " + describe_errno(error);
  }
  return "cannot start a process";
}

struct Process::State {
  struct Reader {
    uv_pipe_t pipe{};
    State* state = nullptr;
    Stream stream{};
    bool open = false;   // the handle has not been closed
    bool ended = false;  // on_end was called
    bool paused = false;
  };

  Loop* loop = nullptr;
  ProcessObserver* observer = nullptr;  // null once the Process was dropped
  pid_t pid = -1;
  Fd pidfd;
  bool exited = false;
  bool reaped = false;
  int handles = 0;  // open libuv handles; the state goes with the last
  uv_poll_t exit{};
  uv_timer_t leash{};  // from the moment at which the child was told to end its tree
  bool leash_open = false;
  Reader readers[3];
  uv_pipe_t input{};
  uv_write_t write{};
  std::string input_bytes;
  bool input_open = false;
  char chunk[65536];  // for all readers: each callback is done with it before the next begins

  void closed() {
    if (--handles == 0 && observer == nullptr) delete this;
  }

  void finish(Reader& reader) {
    if (!reader.open) return;
    reader.open = false;
    uv_close(reinterpret_cast<uv_handle_t*>(&reader.pipe),
             [](uv_handle_t* handle) { static_cast<Reader*>(handle->data)->state->closed(); });
    if (!reader.ended) {
      reader.ended = true;
      if (observer) observer->on_end(reader.stream);
    }
  }

  void read(Reader& reader) {
    uv_read_start(
        reinterpret_cast<uv_stream_t*>(&reader.pipe),
        [](uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
          State& state = *static_cast<Reader*>(handle->data)->state;
          *buffer = uv_buf_init(state.chunk, sizeof state.chunk);
        },
        [](uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
          auto& r = *static_cast<Reader*>(stream->data);
          if (count > 0 && r.state->observer)
            r.state->observer->on_data(r.stream, {buffer->base, static_cast<std::size_t>(count)});
          else if (count < 0)
            r.state->finish(r);
        });
  }

  void open_reader(Stream stream, Fd fd) {
    Reader& reader = readers[static_cast<int>(stream)];
    reader.state = this;
    reader.stream = stream;
    uv_pipe_init(loop->uv(), &reader.pipe, 0);
    reader.pipe.data = &reader;
    reader.open = true;
    ++handles;
    uv_pipe_open(&reader.pipe, fd.release());
    read(reader);
  }

  void close_input() {
    if (!input_open) return;
    input_open = false;
    uv_close(reinterpret_cast<uv_handle_t*>(&input),
             [](uv_handle_t* handle) { static_cast<State*>(handle->data)->closed(); });
  }

  void open_input(Fd fd, std::string bytes) {
    uv_pipe_init(loop->uv(), &input, 0);
    input.data = this;
    input_open = true;
    ++handles;
    uv_pipe_open(&input, fd.release());
    input_bytes = std::move(bytes);
    write.data = this;
    uv_buf_t buffer = uv_buf_init(input_bytes.data(), static_cast<unsigned>(input_bytes.size()));
    // EPIPE is no failure: a command need not read its input.
    uv_write(&write, reinterpret_cast<uv_stream_t*>(&input), &buffer, 1,
             [](uv_write_t* request, int) { static_cast<State*>(request->data)->close_input(); });
  }

  // The child may have ended without having been told to; then there is nothing to wait for.
  void close_leash() {
    if (!leash_open) return;
    leash_open = false;
    uv_close(reinterpret_cast<uv_handle_t*>(&leash),
             [](uv_handle_t* handle) { static_cast<State*>(handle->data)->closed(); });
  }

  void signal_group(int signal) {
    if (!reaped) ::kill(-pid, signal);
  }

  void end_tree() {
    Reader& status = readers[static_cast<int>(Stream::status)];
    if (exited || !status.open) {
      if (!leash_open) signal_group(SIGKILL);  // else it is being waited for
      return;
    }
    uv_timer_init(loop->uv(), &leash);
    leash.data = this;
    leash_open = true;
    ++handles;
    uv_timer_start(
        &leash,
        [](uv_timer_t* timer) {
          auto* state = static_cast<State*>(timer->data);
          state->close_leash();
          state->signal_group(SIGKILL);
        },
        kLeashLimit, 0);
    finish(status);
  }

  void reap() {
    if (reaped || !exited) return;
    reaped = true;
    siginfo_t ignored{};
    while (waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd.get()), &ignored,
                  WEXITED | WNOHANG) < 0 &&
           errno == EINTR) {
    }
  }

  void on_pidfd() {
    siginfo_t info{};
    int waited = 0;
    // WNOWAIT leaves the zombie in place: its id stays taken, so the group can be signalled safely.
    do {
      waited = waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd.get()), &info,
                      WEXITED | WNOHANG | WNOWAIT);
    } while (waited != 0 && errno == EINTR);
    if (waited == 0 && info.si_pid == 0) return;
    exited = true;
    close_leash();
    uv_poll_stop(&exit);
    uv_close(reinterpret_cast<uv_handle_t*>(&exit),
             [](uv_handle_t* handle) { static_cast<State*>(handle->data)->closed(); });
    ExitStatus status;
    // Somebody else in this process may have reaped the child; then it is gone all the same.
    if (waited == 0 && info.si_code == CLD_EXITED)
      status.code = info.si_status;
    else if (waited == 0)
      status.signal = info.si_status;
    if (observer) {
      observer->on_exit(status);
    } else {
      ::kill(-pid, SIGKILL);
      reap();
    }
  }
};

namespace {

struct Pipe {
  Fd read;
  Fd write;
};

// The descriptors that the child gets are moved above 3 first, so that placing one never overwrites
// another.
bool make_pipe(Pipe& pipe) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  pipe.read = Fd(ends[0]);
  pipe.write = Fd(ends[1]);
  for (Fd* end : {&pipe.read, &pipe.write}) {
    if (end->get() > 3) continue;
    int moved = fcntl(end->get(), F_DUPFD_CLOEXEC, 4);
    if (moved < 0) return false;
    *end = Fd(moved);
  }
  return true;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const auto& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

void end_now(pid_t pid) {
  ::kill(-pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class Attributes {
 public:
  explicit Attributes(bool block_term) {
    posix_spawnattr_init(&attributes_);
    sigset_t blocked;
    sigset_t all;
    sigemptyset(&blocked);
    if (block_term) sigaddset(&blocked, SIGTERM);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &blocked);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  posix_spawnattr_t* get() { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

// What is made on the way to a child. Nothing of it needs the loop.
struct Process::Launch {
  explicit Launch(SpawnRequest what) : request(std::move(what)) {}
  std::optional<SpawnError> run();

  SpawnRequest request;
  Pipe out;
  Pipe err;
  Pipe status;
  Pipe in;
  pid_t pid = -1;
  Fd pidfd;
};

std::optional<SpawnError> Process::Launch::run() {
  const std::string& program = request.argv.at(0);
  auto fail = [](SpawnStep step, int error, std::string operand) {
    return SpawnError{step, error, std::move(operand)};
  };

  // Opened here and entered by descriptor, so that its errors are told apart from those of exec.
  const std::string& directory = request.working_directory;
  Fd cwd(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!cwd && (errno == EMFILE || errno == ENFILE))
    return fail(SpawnStep::resources, errno, "too many open files");
  if (!cwd) return fail(SpawnStep::working_directory, errno, directory);
  if (faccessat(cwd.get(), ".", X_OK, AT_EACCESS) != 0)
    return fail(SpawnStep::working_directory, errno, directory);

  if (!make_pipe(out) || !make_pipe(err) || (request.status_channel && !make_pipe(status)) ||
      (request.input && !make_pipe(in)))
    return fail(SpawnStep::resources, errno, "no pipe");

  // A descriptor held for the pidfd, so that the lack of one shows before the command has started.
  Fd reserved(fcntl(cwd.get(), F_DUPFD_CLOEXEC, 4));
  if (!reserved)
    return fail(SpawnStep::resources, errno, "no descriptor to watch the process with");

  FileActions actions;
  if (request.input)
    posix_spawn_file_actions_adddup2(actions.get(), in.read.get(), 0);
  else
    posix_spawn_file_actions_addopen(actions.get(), 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), out.write.get(), 1);
  posix_spawn_file_actions_adddup2(actions.get(), err.write.get(), 2);
  if (request.status_channel)
    posix_spawn_file_actions_adddup2(actions.get(), status.write.get(), 3);
  posix_spawn_file_actions_addfchdir_np(actions.get(), cwd.get());
  posix_spawn_file_actions_addclosefrom_np(actions.get(), request.status_channel ? 4 : 3);

  Attributes attributes(request.block_term);
  auto argv = pointers(request.argv);
  auto environment = pointers(request.environment);
  if (int error = posix_spawnp(&pid, program.c_str(), actions.get(), attributes.get(), argv.data(),
                               environment.data())) {
    pid = -1;
    switch (error) {
      case EAGAIN:
        return fail(SpawnStep::resources, error, "too many processes");
      case ENOMEM:
        return fail(SpawnStep::resources, error, "not enough memory");
      case EMFILE:
      case ENFILE:
        return fail(SpawnStep::resources, error, "too many open files");
      case E2BIG:
        return fail(SpawnStep::resources, error, "the command line is too long");
      default:
        return fail(SpawnStep::program, error, program);
    }
  }
  for (Pipe* pipe : {&out, &err, &status}) pipe->write.reset();
  in.read.reset();

  reserved.reset();
  pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd) return std::nullopt;
  const int error = errno;
  end_now(pid);
  return fail(SpawnStep::resources, error, "no pidfd");
}

Process::Spawned Process::watch(Loop& loop, Launch& child, ProcessObserver& observer) {
  auto* state = new State;
  state->loop = &loop;
  state->observer = &observer;
  state->pid = child.pid;
  state->pidfd = std::move(child.pidfd);
  if (int error = uv_poll_init(loop.uv(), &state->exit, state->pidfd.get())) {
    end_now(child.pid);
    delete state;
    return SpawnError{SpawnStep::resources, -error, "cannot watch the process"};
  }
  state->exit.data = state;
  ++state->handles;
  uv_poll_start(&state->exit, UV_READABLE,
                [](uv_poll_t* handle, int, int) { static_cast<State*>(handle->data)->on_pidfd(); });
  state->open_reader(Stream::output, std::move(child.out.read));
  state->open_reader(Stream::error, std::move(child.err.read));
  if (child.status.read) state->open_reader(Stream::status, std::move(child.status.read));
  if (child.in.write) state->open_input(std::move(child.in.write), std::move(*child.request.input));
  return std::unique_ptr<Process>(new Process(state));
}

Process::Spawned Process::spawn(Loop& loop, const SpawnRequest& request,
                                ProcessObserver& observer) {
  Launch child(request);
  if (auto error = child.run()) return *error;
  return watch(loop, child, observer);
}

struct Process::Starting::Work {
  Work(Loop& on, ProcessObserver& watcher, SpawnRequest request, std::function<void(Spawned)> tell)
      : loop(on), observer(watcher), child(std::move(request)), started(std::move(tell)) {}

  void run() {
    error = child.run();
    ready = true;
    uv_async_send(&told);  // the loop may free this at once
  }

  void done() {
    if (!starting) {
      // Nobody waits for it. As a Process it is ended with its tree, and reaped.
      struct Nobody : ProcessObserver {
        void on_data(Stream, std::span<const char>) override {}
        void on_end(Stream) override {}
        void on_exit(ExitStatus) override {}
      } nobody;
      if (!error) watch(loop, child, nobody);
      return;
    }
    starting->work_ = nullptr;
    auto tell = std::move(started);
    tell(error ? Spawned(*error) : watch(loop, child, observer));
  }

  uv_async_t told{};
  Loop& loop;
  ProcessObserver& observer;
  Launch child;
  std::function<void(Spawned)> started;
  std::optional<SpawnError> error;
  std::atomic<bool> ready = false;
  Starting* starting = nullptr;  // null once it was dropped
};

// Threads that start processes. Not libuv's, where a disk that hangs would hold up every start; and
// they never end, since a child that asked to die with its parent (PR_SET_PDEATHSIG) dies with the
// thread that forked it.
class Process::Starting::Threads {
 public:
  static Threads& get() {
    static auto* threads = new Threads;
    return *threads;
  }

  void start(Work* work) {
    std::unique_lock lock(mutex_);
    waiting_.push_back(work);
    if (waiting_.size() > idle_ && count_ < kMost && !add() && count_ == 0) {
      waiting_.pop_back();
      lock.unlock();
      work->run();  // without any thread the loop must wait
      return;
    }
    wake_.notify_one();
  }

 private:
  // Each start that hangs keeps one.
  static constexpr std::size_t kMost = 16;

  bool add() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the host's own threads
    bool added = true;
    try {
      std::thread([this] { serve(); }).detach();
      ++count_;
    } catch (const std::system_error&) {
      added = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return added;
  }

  [[noreturn]] void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      wake_.wait(lock, [this] { return !waiting_.empty(); });
      --idle_;
      Work* work = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      work->run();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work*> waiting_;
  std::size_t idle_ = 0;
  std::size_t count_ = 0;
};

std::unique_ptr<Process::Starting> Process::start(Loop& loop, SpawnRequest request,
                                                  ProcessObserver& observer,
                                                  std::function<void(Spawned)> started) {
  auto* work = new Starting::Work(loop, observer, std::move(request), std::move(started));
  std::unique_ptr<Starting> starting(new Starting(work));
  work->starting = starting.get();
  work->told.data = work;
  // Cannot fail: the descriptor behind it is as old as the loop.
  uv_async_init(loop.uv(), &work->told, [](uv_async_t* told) {
    auto* self = static_cast<Starting::Work*>(told->data);
    if (!self->ready) return;
    uv_close(reinterpret_cast<uv_handle_t*>(told),
             [](uv_handle_t* handle) { delete static_cast<Starting::Work*>(handle->data); });
    self->done();
  });
  Starting::Threads::get().start(work);
  return starting;
}

Process::Starting::~Starting() {
  if (!work_) return;
  work_->starting = nullptr;
  work_->started = nullptr;  // what it holds goes with the caller, not later
}

bool Process::paused(Stream stream) const noexcept {
  const auto& reader = state_->readers[static_cast<int>(stream)];
  return reader.open && reader.paused;
}

void Process::close_stream(Stream stream) noexcept {
  state_->finish(state_->readers[static_cast<int>(stream)]);
}

Process::~Process() {
  state_->observer = nullptr;
  end_tree();
  state_->reap();
  close_streams();
  if (state_->handles == 0) delete state_;
}

int Process::pid() const noexcept {
  return state_->pid;
}

void Process::signal_group(int signal) noexcept {
  state_->signal_group(signal);
}

void Process::end_tree() noexcept {
  state_->end_tree();
}

void Process::reap() noexcept {
  state_->reap();
}

void Process::pause(Stream stream) noexcept {
  auto& reader = state_->readers[static_cast<int>(stream)];
  if (!reader.open || reader.paused) return;
  reader.paused = true;
  uv_read_stop(reinterpret_cast<uv_stream_t*>(&reader.pipe));
}

void Process::resume(Stream stream) noexcept {
  auto& reader = state_->readers[static_cast<int>(stream)];
  if (!reader.open || !reader.paused) return;
  reader.paused = false;
  state_->read(reader);
}

void Process::close_streams() noexcept {
  State* state = state_;  // the observer may drop this Process at each end
  for (auto& reader : state->readers) state->finish(reader);
  state->close_input();
}

}  // namespace stockade
