// SPDX-License-Identifier: MIT
// clone and a pidfd. uv_spawn forks the whole host, which costs 0.1 s for each GiB that it has
// resident, and then blocks the loop until exec, as posix_spawn and vfork do as well.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "framework/child_linux.hpp"
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

namespace {

// For all readers of a loop's thread: each callback is done with it before the next begins.
thread_local char chunk[65536];

// A writer wakes the reader of an empty pipe with its first few KiB. A loud one would do so a
// hundred thousand times a second, and the processors would be busy with that: its pipe is made
// larger, and once it is empty it is left alone for a moment. Nor may it keep the loop from all
// else: after so much it is the turn of the others.
constexpr std::size_t kLoud = 32768;    // bytes since the last rest, or since the beginning
constexpr std::size_t kTurn = 1 << 17;  // bytes without a rest
constexpr int kLoudPipe = 1 << 18;      // bytes
constexpr long kRestNanoseconds = 200'000;

}  // namespace

struct Process::State {
  struct Launch;
  struct Reader {
    uv_pipe_t pipe{};
    State* state = nullptr;
    Stream stream{};
    bool open = false;   // the handle has not been closed
    bool ended = false;  // on_end was called
    bool paused = false;
    bool resting = false;  // until the rest timer
    bool widened = false;
    bool wide = false;
    std::size_t burst = 0;

    void widen() {
      if (std::exchange(widened, true)) return;
      uv_os_fd_t fd = -1;
      wide = uv_fileno(reinterpret_cast<uv_handle_t*>(&pipe), &fd) == 0 &&
             fcntl(fd, F_SETPIPE_SZ, kLoudPipe) >= 0;
    }
  };

  Loop* loop = nullptr;
  ProcessObserver* observer = nullptr;  // null once the Process was dropped
  pid_t pid = -1;
  Fd pidfd;
  std::unique_ptr<Launch> launch;  // until it is seen that the child has no use for it any more
  bool exited = false;
  bool reaped = false;
  int handles = 0;  // open libuv handles; the state goes with the last
  uv_poll_t exit{};
  uv_timer_t leash{};  // from the moment at which the child was told to end its tree
  bool leash_open = false;
  Reader readers[3];
  Fd rest_timer;
  uv_poll_t rest{};
  bool rest_open = false;  // only while a reader is
  uv_pipe_t input{};
  uv_write_t write{};
  std::string input_bytes;
  bool input_open = false;
  void free_launch();  // if its time has come

  void closed() {
    if (--handles == 0 && observer == nullptr) delete this;
  }

  void finish(Reader& reader) {
    if (!reader.open) return;
    reader.open = false;
    uv_close(reinterpret_cast<uv_handle_t*>(&reader.pipe),
             [](uv_handle_t* handle) { static_cast<Reader*>(handle->data)->state->closed(); });
    close_rest();
    if (!reader.ended) {
      reader.ended = true;
      if (observer) observer->on_end(reader.stream);
    }
  }

  void read(Reader& reader) {
    uv_read_start(
        reinterpret_cast<uv_stream_t*>(&reader.pipe),
        [](uv_handle_t*, std::size_t, uv_buf_t* buffer) {
          *buffer = uv_buf_init(chunk, sizeof chunk);
        },
        [](uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
          auto& r = *static_cast<Reader*>(stream->data);
          r.state->free_launch();
          if (count < 0) {
            r.state->finish(r);
          } else if (count > 0 && r.state->observer) {
            r.state->observer->on_data(r.stream, {buffer->base, static_cast<std::size_t>(count)});
            r.state->let_rest(r, static_cast<std::size_t>(count));
          }
        });
  }

  void let_rest(Reader& reader, std::size_t taken) {
    if (!reader.open || reader.paused) return;
    reader.burst += taken;
    const bool empty = taken < sizeof chunk;
    if (!empty) reader.widen();
    const bool loud = empty && reader.wide && reader.burst >= kLoud;
    if ((loud || reader.burst >= kTurn) && start_rest(loud ? kRestNanoseconds : 1)) {
      reader.burst = 0;
      reader.resting = true;
      uv_read_stop(reinterpret_cast<uv_stream_t*>(&reader.pipe));
    }
  }

  bool start_rest(long nanoseconds) {
    if (!rest_open) {
      if (!rest_timer) rest_timer = Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
      if (!rest_timer || uv_poll_init(loop->uv(), &rest, rest_timer.get()) != 0) return false;
      rest.data = this;
      rest_open = true;
      ++handles;
      uv_poll_start(&rest, UV_READABLE, [](uv_poll_t* handle, int, int) {
        static_cast<State*>(handle->data)->end_rest();
      });
    }
    itimerspec once{};
    once.it_value.tv_nsec = nanoseconds;
    return timerfd_settime(rest_timer.get(), 0, &once, nullptr) == 0;
  }

  void end_rest() {
    std::uint64_t expirations = 0;
    if (::read(rest_timer.get(), &expirations, sizeof expirations) < 0) return;  // set anew
    for (Reader& reader : readers)
      if (std::exchange(reader.resting, false) && reader.open && !reader.paused) read(reader);
  }

  void close_rest() {
    if (!rest_open || readers[0].open || readers[1].open || readers[2].open) return;
    rest_open = false;
    uv_close(reinterpret_cast<uv_handle_t*>(&rest),
             [](uv_handle_t* handle) { static_cast<State*>(handle->data)->closed(); });
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

  // By its own id as well while it leads no group yet; until it is reaped the id is taken.
  void signal_group(int signal) {
    if (!reaped && ::kill(-pid, signal) != 0 && errno == ESRCH) ::kill(pid, signal);
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

  void on_pidfd();
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

// How a thread sanitizer's own clone() would go on in the child is not for one in the same memory.
#if defined(__SANITIZE_THREAD__)
#define STOCKADE_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STOCKADE_TSAN
#endif
#endif
#if defined(STOCKADE_TSAN)
extern "C" int __clone(int (*)(void*), void*, int, void*, ...);
constexpr auto* clone_child = __clone;
#else
constexpr auto* clone_child = ::clone;
#endif

constexpr const char* kManyProcesses = "too many processes";
constexpr const char* kManyFiles = "too many open files";
constexpr const char* kNoMemory = "not enough memory";

void end_now(pid_t pid) {
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);  // it may lead no group yet
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Signals that come while the child still has the host's handlers would run them in the host's
// memory.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Where a name without a slash is looked for. Not in a relative directory of PATH: the child is in
// the workspace by then, where anybody may have put a program of that name.
std::vector<std::string> candidates(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> found;
  const char* path = getenv("PATH");
  std::string_view rest = path ? path : "/bin:/usr/bin";
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    if (rest.front() == '/') found.push_back(std::string(rest.substr(0, end)) + "/" + program);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return found;
}

}  // namespace

// What the child uses of the host's memory until it has executed its program or ended.
struct Process::State::Launch {
  explicit Launch(SpawnRequest what)
      : request(std::move(what)),
        programs(candidates(request.argv.at(0))),
        argv(pointers(request.argv)),
        environment(pointers(request.environment)),
        program_pointers(pointers(programs)) {
    plan.programs = program_pointers.data();
    plan.argv = argv.data();
    plan.environment = environment.data();
    plan.directory = request.working_directory.c_str();
    plan.block_term = request.block_term;
  }

  SpawnError failure() const {
    const int error = plan.error;
    auto resources = [&](const char* what) {
      return SpawnError{SpawnStep::resources, error, what};
    };
    switch (plan.failed) {
      case ChildPlan::directory_step:
        return {SpawnStep::working_directory, error, request.working_directory};
      case ChildPlan::null_step:
        return resources(error == EMFILE || error == ENFILE ? kManyFiles : "no /dev/null");
      default:
        break;
    }
    switch (error) {
      case EAGAIN:
        return resources(kManyProcesses);
      case ENOMEM:
        return resources(kNoMemory);
      case EMFILE:
      case ENFILE:
        return resources(kManyFiles);
      case E2BIG:
        return resources("the command line is too long");
      default:
        return {SpawnStep::program, error, request.argv.at(0)};
    }
  }

  SpawnRequest request;
  std::vector<std::string> programs;
  std::vector<char*> argv;
  std::vector<char*> environment;
  std::vector<char*> program_pointers;
  ChildPlan plan;
  pid_t inside = 1;  // the kernel's: 0 when the child has left
  alignas(16) char stack[16384];
};

void Process::State::free_launch() {
  if (!launch || std::atomic_ref<pid_t>(launch->inside).load(std::memory_order_acquire) != 0)
    return;
  if (launch->plan.failed == ChildPlan::none) launch.reset();
}

void Process::State::on_pidfd() {
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
  if (observer && launch && launch->plan.failed != ChildPlan::none) {
    observer->on_failed(launch->failure());
  } else if (observer) {
    observer->on_exit(status);
  } else {
    ::kill(-pid, SIGKILL);
    reap();
  }
}

Process::Spawned Process::spawn(Loop& loop, SpawnRequest request, ProcessObserver& observer) {
  auto fail = [](int error, std::string operand) {
    return SpawnError{SpawnStep::resources, error, std::move(operand)};
  };
  Pipe out;
  Pipe err;
  Pipe status;
  Pipe in;
  if (!make_pipe(out) || !make_pipe(err) || (request.status_channel && !make_pipe(status)) ||
      (request.input && !make_pipe(in)))
    return fail(errno, errno == EMFILE || errno == ENFILE ? kManyFiles : "no pipe");

  std::optional<std::string> input = std::exchange(request.input, std::nullopt);
  std::unique_ptr<State> state(new State);
  state->loop = &loop;
  state->observer = &observer;
  state->launch = std::make_unique<State::Launch>(std::move(request));
  State::Launch& launch = *state->launch;
  const Fd* placed[] = {&in.read, &out.write, &err.write, &status.write};
  for (int fd = 0; fd < 4; ++fd) launch.plan.descriptors[fd] = placed[fd]->get();

  // The child shares the host's memory, as that of posix_spawn does, so that its cost is the same
  // whatever the host's size. But this thread goes on beside it.
  int pidfd = -1;
  int flags = CLONE_VM | CLONE_PIDFD | CLONE_CHILD_CLEARTID | SIGCHLD;
  if (!kChildRunsBeside) flags |= CLONE_VFORK;
  {
    SignalsBlocked blocked;
    state->pid = clone_child(run_child, launch.stack + sizeof launch.stack, flags, &launch.plan,
                             &pidfd, nullptr, &launch.inside);
  }
  if (state->pid < 0) switch (const int error = errno) {
      case EAGAIN:
        return fail(error, kManyProcesses);
      case ENOMEM:
        return fail(error, kNoMemory);
      case EMFILE:
      case ENFILE:
        return fail(error, kManyFiles);
      default:
        return fail(error, "no process");
    }
  state->pidfd = Fd(pidfd);
  if (int error = uv_poll_init(loop.uv(), &state->exit, pidfd)) {
    end_now(state->pid);
    return fail(-error, "cannot watch the process");
  }
  State* watched = state.release();
  watched->exit.data = watched;
  ++watched->handles;
  uv_poll_start(&watched->exit, UV_READABLE,
                [](uv_poll_t* handle, int, int) { static_cast<State*>(handle->data)->on_pidfd(); });
  watched->open_reader(Stream::output, std::move(out.read));
  watched->open_reader(Stream::error, std::move(err.read));
  if (status.read) watched->open_reader(Stream::status, std::move(status.read));
  if (in.write) watched->open_input(std::move(in.write), std::move(*input));
  return std::unique_ptr<Process>(new Process(watched));
}

bool Process::paused(Stream stream) const noexcept {
  const auto& reader = state_->readers[static_cast<int>(stream)];
  return reader.open && reader.paused;
}

void Process::take_rest(Stream stream) {
  // More than a pipe holds, should somebody go on writing.
  constexpr int kMostReads = 2 * kLoudPipe / sizeof chunk;
  State* state = state_;  // the observer may drop this Process at the end
  State::Reader& reader = state->readers[static_cast<int>(stream)];
  uv_os_fd_t fd = -1;
  if (!reader.open || reader.paused ||
      uv_fileno(reinterpret_cast<uv_handle_t*>(&reader.pipe), &fd) != 0)
    return;
  for (int i = 0; i < kMostReads; ++i) {
    ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    state->observer->on_data(stream, {chunk, static_cast<std::size_t>(n)});
    if (!state->observer || !reader.open || reader.paused) return;
  }
  state->finish(reader);
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
  if (!reader.resting) state_->read(reader);
}

void Process::close_streams() noexcept {
  State* state = state_;  // the observer may drop this Process at each end
  for (auto& reader : state->readers) state->finish(reader);
  state->close_input();
}

}  // namespace stockade
