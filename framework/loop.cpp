// SPDX-License-Identifier: MIT
#include "framework/loop.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <system_error>
#include <thread>

#include "framework/completion.hpp"
#include "framework/error.hpp"

namespace stockade {

struct Timer::State {
  Loop* loop = nullptr;
  uv_timer_t handle{};
  std::function<void()> callback;

  void fire() {
    auto callback_now = std::exchange(callback, nullptr);
    if (callback_now) callback_now();
  }
};

struct Loop::Impl {
  // Of a ManualClock, while there is one.
  struct ManualTime {
    std::chrono::milliseconds now{0};
    std::multimap<std::chrono::milliseconds, Timer::State*> due;
  };

  uv_loop_t loop{};
  uv_idle_t turn{};  // runs once a turn while work is queued, and keeps the loop from sleeping
  std::deque<std::function<void()>> queue;
  std::optional<ManualTime> manual;

  void forget(const Timer::State* timer) {
    if (manual)
      std::erase_if(manual->due, [timer](const auto& due) { return due.second == timer; });
  }

  void run_queue() {
    // What this turn's work posts belongs to the next turn.
    std::deque<std::function<void()>> now;
    now.swap(queue);
    for (auto& work : now) {
      work();
      work = nullptr;  // let go of what it held before the next piece runs
    }
    if (queue.empty()) uv_idle_stop(&turn);
  }
};

namespace {

// libuv starts its threads at the first use and aborts the process when it cannot, which a command
// that uses up the processes of its user could bring about in the middle of a call.
void start_threads(uv_loop_t* loop) {
  try {
    std::thread([] {}).join();
  } catch (const std::system_error& error) {
    throw Error("LOOP_UNAVAILABLE", std::string("cannot start a thread: ") + error.what() +
                                        "; raise the limit of processes");
  }
  uv_work_t nothing;  // done with before this returns
  uv_queue_work(
      loop, &nothing, [](uv_work_t*) {}, nullptr);
  uv_run(loop, UV_RUN_DEFAULT);
}

// The kernel's table of descriptors grows by doubling, and where threads share it each time after a
// wait for all processors (synchronize_rcu in expand_fdtable): 10 to 20 ms on a busy machine, in
// whatever call opens the descriptor too many. It never shrinks.
void reserve_descriptors() {
  constexpr rlim_t kDescriptors = 4096;  // 32 KiB of the kernel's memory; some 500 calls at once
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const int last = static_cast<int>(std::min(limit.rlim_cur, kDescriptors)) - 1;
  const int any = open("/", O_RDONLY | O_CLOEXEC);
  const int high = fcntl(any, F_DUPFD_CLOEXEC, last);
  if (high >= 0) close(high);
  if (any >= 0) close(any);
}

}  // namespace

Loop::Loop() : impl_(std::make_unique<Impl>()) {
  if (int error = uv_loop_init(&impl_->loop))
    throw Error("LOOP_UNAVAILABLE", std::string("cannot create an event loop: ") +
                                        uv_strerror(error) + "; raise the limit of open files");
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  struct sigaction child {};
  // Ignored, the kernel would reap children itself, and their exit would be lost.
  if (sigaction(SIGCHLD, nullptr, &child) == 0 && child.sa_handler == SIG_IGN)
    signal(SIGCHLD, SIG_DFL);
  reserve_descriptors();  // before there are threads
  start_threads(&impl_->loop);
  uv_idle_init(&impl_->loop, &impl_->turn);
  impl_->turn.data = impl_.get();
}

Loop::~Loop() {
  drain();
  uv_close(reinterpret_cast<uv_handle_t*>(&impl_->turn), nullptr);
  uv_run(&impl_->loop, UV_RUN_DEFAULT);
  uv_loop_close(&impl_->loop);
}

uv_loop_s* Loop::uv() noexcept {
  return &impl_->loop;
}

void Loop::post(std::function<void()> work) {
  impl_->queue.push_back(std::move(work));
  uv_idle_start(&impl_->turn,
                [](uv_idle_t* handle) { static_cast<Impl*>(handle->data)->run_queue(); });
}

void Loop::run_until(const std::function<bool()>& done) {
  while (!done()) {
    if (uv_run(&impl_->loop, UV_RUN_ONCE) == 0 && impl_->queue.empty() && !done())
      throw Error("LOOP_IDLE",
                  "the event loop has nothing left to do, but the awaited work has not finished");
  }
}

void Loop::drain() {
  do {
    uv_run(&impl_->loop, UV_RUN_DEFAULT);
  } while (!impl_->queue.empty());
}

ManualClock::ManualClock(Loop& loop) : loop_(loop) {
  loop.impl_->manual = Loop::Impl::ManualTime{};
}

ManualClock::~ManualClock() {
  loop_.impl_->manual.reset();
}

void ManualClock::advance(std::chrono::milliseconds by) {
  auto& time = *loop_.impl_->manual;
  const auto until = time.now + by;
  loop_.drain();
  while (!time.due.empty() && time.due.begin()->first <= until) {
    auto next = time.due.extract(time.due.begin());
    time.now = next.key();
    next.mapped()->fire();
    loop_.drain();
  }
  time.now = until;
}

Timer::Timer(Loop& loop) : state_(new State) {
  state_->loop = &loop;
  uv_timer_init(loop.uv(), &state_->handle);
  state_->handle.data = state_;
}

Timer::~Timer() {
  stop();
  uv_close(reinterpret_cast<uv_handle_t*>(&state_->handle),
           [](uv_handle_t* handle) { delete static_cast<State*>(handle->data); });
}

void Timer::start(std::chrono::milliseconds delay, std::function<void()> callback) {
  stop();
  state_->callback = std::move(callback);
  delay = std::max(delay, std::chrono::milliseconds(0));
  if (auto& manual = state_->loop->impl_->manual) {
    manual->due.emplace(manual->now + delay, state_);
    return;
  }
  uv_update_time(state_->handle.loop);  // delays count from now, not from the turn's beginning
  uv_timer_start(
      &state_->handle, [](uv_timer_t* handle) { static_cast<State*>(handle->data)->fire(); },
      static_cast<std::uint64_t>(delay.count()), 0);
}

void Timer::stop() noexcept {
  uv_timer_stop(&state_->handle);
  state_->loop->impl_->forget(state_);
  state_->callback = nullptr;
}

bool Timer::running() const noexcept {
  return state_->callback != nullptr;
}

Task<> sleep(Loop& loop, std::chrono::milliseconds delay) {
  Completion<> elapsed(loop);
  Timer timer(loop);
  timer.start(delay, [elapsed] { elapsed.settle(); });
  co_await elapsed;
}

namespace {

// The coroutine that a scope drives a task with. It is destroyed by its scope, never by itself.
struct Root {
  struct promise_type {
    Root get_return_object() noexcept {
      return Root{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };

  explicit Root(std::coroutine_handle<promise_type> h) noexcept : handle(h) {}
  Root(Root&& other) noexcept : handle(std::exchange(other.handle, {})) {}
  Root& operator=(Root&&) = delete;
  ~Root() {
    if (handle) handle.destroy();
  }
  std::coroutine_handle<promise_type> handle;
};

}  // namespace

struct TaskScope::Impl {
  Impl(Loop& l, std::function<void(std::exception_ptr)> f) : loop(l), on_error(std::move(f)) {}
  Loop& loop;
  std::function<void(std::exception_ptr)> on_error;
  std::list<Root> running;

  using Position = std::shared_ptr<std::list<Root>::iterator>;
  static Position add(const std::shared_ptr<Impl>& self, Task<> task);
};

namespace {

Root drive(Task<> task, std::function<void(std::exception_ptr)> done) {
  std::exception_ptr error;
  try {
    co_await task;
  } catch (...) {
    error = std::current_exception();
  }
  done(error);
}

}  // namespace

TaskScope::TaskScope(Loop& loop, std::function<void(std::exception_ptr)> on_error)
    : impl_(std::make_shared<Impl>(loop, std::move(on_error))) {}

TaskScope::~TaskScope() {
  // Dropping one task may end another or start a third; each is taken out before it goes.
  while (!impl_->running.empty()) {
    std::list<Root> last;
    last.splice(last.begin(), impl_->running, std::prev(impl_->running.end()));
  }
}

std::size_t TaskScope::size() const noexcept {
  return impl_->running.size();
}

TaskScope::Impl::Position TaskScope::Impl::add(const std::shared_ptr<Impl>& self, Task<> task) {
  std::weak_ptr<Impl> weak = self;
  auto position = std::make_shared<std::list<Root>::iterator>();
  self->running.push_back(drive(std::move(task), [weak, position](std::exception_ptr error) {
    auto impl = weak.lock();
    if (!impl) return;
    if (error) impl->on_error(error);
    // The frame is still on the stack; it goes on a later turn, unless its scope went before.
    impl->loop.post([weak, position] {
      if (auto still = weak.lock()) still->running.erase(*position);
    });
  }));
  *position = std::prev(self->running.end());
  return position;
}

void TaskScope::start(Task<> task) {
  auto position = Impl::add(impl_, std::move(task));
  impl_->loop.post([weak = std::weak_ptr<Impl>(impl_), position] {
    if (auto impl = weak.lock()) (*position)->handle.resume();
  });
}

void TaskScope::start_now(Task<> task) {
  auto position = Impl::add(impl_, std::move(task));
  (*position)->handle.resume();
}

namespace {

Task<> note_end(Task<> task, std::exception_ptr* error, std::size_t* left, Completion<> done) {
  try {
    co_await task;
  } catch (...) {
    *error = std::current_exception();
  }
  if (--*left == 0) done.settle();
}

}  // namespace

Task<std::vector<std::exception_ptr>> all_settled(Loop& loop, std::vector<Task<>> tasks) {
  std::vector<std::exception_ptr> errors(tasks.size());
  std::size_t left = tasks.size();
  Completion<> done(loop);
  TaskScope scope(loop, [](std::exception_ptr) {});
  for (std::size_t i = 0; i < tasks.size(); ++i)
    scope.start_now(note_end(std::move(tasks[i]), &errors[i], &left, done));
  if (left > 0) co_await done;
  co_return errors;
}

}  // namespace stockade
