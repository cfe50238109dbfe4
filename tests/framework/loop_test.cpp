// SPDX-License-Identifier: MIT
#include "framework/loop.hpp"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "framework/completion.hpp"
#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

TEST_CASE("loop: posted work runs in order and never inside the caller") {
  Loop loop;
  std::vector<int> order;
  loop.post([&] { order.push_back(1); });
  loop.post([&] { order.push_back(2); });
  CHECK(order.empty());
  loop.drain();
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("loop: the kernel's table of descriptors is large enough from the beginning") {
  Loop loop;
  std::ifstream in("/proc/self/status");
  std::string word;
  rlim_t size = 0;
  while (in >> word)
    if (word == "FDSize:") in >> size;
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(size >= std::min<rlim_t>(limit.rlim_cur, 4096));
}

TEST_CASE("loop: what posted work posts runs on a later turn") {
  Loop loop;
  std::vector<int> order;
  loop.post([&] {
    loop.post([&] { order.push_back(3); });
    order.push_back(1);
  });
  loop.post([&] { order.push_back(2); });
  loop.drain();
  CHECK(order == std::vector<int>{1, 2, 3});
}

TEST_CASE("loop: posted work lets go of what it held before the next runs") {
  Loop loop;
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> watched = held;
  bool gone = false;
  loop.post([held] {});
  loop.post([&] { gone = watched.expired(); });
  held.reset();
  loop.drain();
  CHECK(gone);
}

TEST_CASE("loop: work that posts itself again starves no timer") {
  Loop loop;
  bool fired = false;
  int turns = 0;
  std::function<void()> again = [&] {
    ++turns;
    if (!fired) loop.post(again);
  };
  Timer timer(loop);
  timer.start(milliseconds(2), [&] { fired = true; });
  loop.post(again);
  loop.drain();
  CHECK(fired);
  CHECK(turns > 1);
}

TEST_CASE("loop: run_until returns at once when it is done") {
  bool ran = false;
  Loop loop;
  loop.post([&] { ran = true; });
  loop.run_until([] { return true; });
  CHECK_FALSE(ran);
}

TEST_CASE("loop: run_until stops as soon as it is done") {
  int count = 0;
  Loop* target = nullptr;
  std::function<void()> again = [&] {
    if (++count < 100) target->post(again);
  };
  Loop loop;  // runs what is left when it goes, so it goes first
  target = &loop;
  loop.post(again);
  loop.run_until([&] { return count == 3; });
  CHECK(count == 3);
}

TEST_CASE("loop: run_until reports a loop that has nothing left to do") {
  Loop loop;
  int ran = 0;
  loop.post([&] { loop.post([&] { ++ran; }); });
  CHECK(failure_of([&] { loop.run_until([] { return false; }); }).code == "LOOP_IDLE");
  CHECK(ran == 1);
}

TEST_CASE("loop: run_until accepts what the last turn brought") {
  Loop loop;
  bool done = false;
  loop.post([&] { done = true; });
  CHECK_NOTHROW(loop.run_until([&] { return done; }));
}

TEST_CASE("loop: destruction runs what is still queued") {
  int ran = 0;
  {
    Loop loop;
    loop.post([&] { loop.post([&] { ++ran; }); });
  }
  CHECK(ran == 1);
}

TEST_CASE("loop: a writer survives a reader that went away") {
  signal(SIGPIPE, SIG_DFL);
  Loop loop;
  struct sigaction action {};
  sigaction(SIGPIPE, nullptr, &action);
  CHECK(action.sa_handler == SIG_IGN);
}

TEST_CASE("timer: fires once after its delay") {
  Loop loop;
  Timer timer(loop);
  int fired = 0;
  auto begun = Clock::now();
  timer.start(milliseconds(20), [&] { ++fired; });
  CHECK(timer.running());
  CHECK(fired == 0);
  loop.drain();
  CHECK(fired == 1);
  CHECK_FALSE(timer.running());
  CHECK(Clock::now() - begun >= milliseconds(19));
}

TEST_CASE("timer: with no delay still fires on a later turn") {
  Loop loop;
  Timer timer(loop);
  int fired = 0;
  timer.start(milliseconds(0), [&] { ++fired; });
  CHECK(fired == 0);
  loop.drain();
  CHECK(fired == 1);
  timer.start(milliseconds(-5), [&] { ++fired; });
  loop.drain();
  CHECK(fired == 2);
}

TEST_CASE("timer: shorter delays fire first") {
  Loop loop;
  std::vector<int> order;
  Timer late(loop);
  Timer soon(loop);
  late.start(milliseconds(15), [&] { order.push_back(2); });
  soon.start(milliseconds(1), [&] { order.push_back(1); });
  loop.drain();
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("timer: stopping or dropping it keeps its callback from running") {
  Loop loop;
  bool fired = false;
  Timer stopped(loop);
  stopped.start(milliseconds(1), [&] { fired = true; });
  stopped.stop();
  CHECK_FALSE(stopped.running());
  {
    Timer dropped(loop);
    dropped.start(milliseconds(1), [&] { fired = true; });
  }
  run_for(loop, milliseconds(10));
  CHECK_FALSE(fired);
}

TEST_CASE("timer: starting again replaces the callback and the delay") {
  Loop loop;
  std::vector<int> order;
  Timer timer(loop);
  timer.start(milliseconds(1), [&] { order.push_back(1); });
  timer.start(milliseconds(2), [&] { order.push_back(2); });
  loop.drain();
  CHECK(order == std::vector<int>{2});
}

TEST_CASE("timer: its callback may start it again or drop it") {
  Loop loop;
  int fired = 0;
  auto timer = std::make_unique<Timer>(loop);
  timer->start(milliseconds(1), [&] {
    ++fired;
    timer->start(milliseconds(1), [&] {
      ++fired;
      timer.reset();
    });
  });
  loop.drain();
  CHECK(fired == 2);
  CHECK(timer == nullptr);
}

TEST_CASE("timer: counts from its start and not from the beginning of the turn") {
  Loop loop;
  Timer timer(loop);
  Clock::time_point started;
  Clock::time_point fired;
  loop.post([&] {
    auto busy = Clock::now() + milliseconds(30);
    while (Clock::now() < busy) {
    }
    started = Clock::now();
    timer.start(milliseconds(20), [&] { fired = Clock::now(); });
  });
  loop.drain();
  CHECK(fired - started >= milliseconds(19));
}

Task<> sleep_and_note(Loop* loop, milliseconds time, Trace* trace, std::string label) {
  auto pause = sleep(*loop, time);
  co_await pause;
  trace->push_back(label);
}

TEST_CASE("sleep: waits at least its time") {
  Loop loop;
  Trace trace;
  auto begun = Clock::now();
  run(loop, sleep_and_note(&loop, milliseconds(20), &trace, "awake"));
  CHECK(Clock::now() - begun >= milliseconds(19));
  CHECK(trace == Trace{"awake"});
}

struct Guard {
  Trace* trace;
  std::string label;
  ~Guard() { trace->push_back(label + " dropped"); }
};

Task<> sleep_long(Loop* loop, Trace* trace, std::string label) {
  Guard guard{trace, label};
  auto pause = sleep(*loop, std::chrono::hours(1));
  co_await pause;
  trace->push_back(label + " awake");
}

Task<> note(Trace* trace, std::string label) {
  trace->push_back(label);
  co_return;
}

Task<> fail(std::string text) {
  throw std::runtime_error(text);
  co_return;
}

TEST_CASE("task scope: a started task begins on a later turn") {
  Loop loop;
  Trace trace;
  TaskScope scope(loop, [](std::exception_ptr) {});
  scope.start(note(&trace, "ran"));
  CHECK(trace.empty());
  CHECK(scope.size() == 1);
  loop.drain();
  CHECK(trace == Trace{"ran"});
  CHECK(scope.size() == 0);
}

TEST_CASE("task scope: tasks run side by side") {
  Loop loop;
  Trace trace;
  TaskScope scope(loop, [](std::exception_ptr) {});
  scope.start(sleep_and_note(&loop, milliseconds(15), &trace, "slow"));
  scope.start(sleep_and_note(&loop, milliseconds(1), &trace, "fast"));
  loop.drain();
  CHECK(trace == Trace{"fast", "slow"});
}

TEST_CASE("task scope: an error is given to its handler and the rest goes on") {
  Loop loop;
  Trace trace;
  TaskScope scope(loop, [&](std::exception_ptr error) { trace.push_back(describe(error)); });
  scope.start(fail("broken"));
  scope.start(note(&trace, "ran"));
  loop.drain();
  CHECK(trace == Trace{"broken", "ran"});
  CHECK(scope.size() == 0);
}

TEST_CASE("task scope: dropping it cancels what runs from last to first") {
  Loop loop;
  Trace trace;
  {
    TaskScope scope(loop, [](std::exception_ptr) {});
    scope.start(sleep_long(&loop, &trace, "one"));
    scope.start(sleep_long(&loop, &trace, "two"));
    run_for(loop, milliseconds(2));
    CHECK(trace.empty());
  }
  CHECK(trace == Trace{"two dropped", "one dropped"});
  auto begun = Clock::now();
  loop.drain();
  CHECK(Clock::now() - begun < std::chrono::seconds(10));
  CHECK(trace.size() == 2);
}

TEST_CASE("task scope: dropping it before the first turn runs nothing") {
  Loop loop;
  Trace trace;
  {
    TaskScope scope(loop, [](std::exception_ptr) {});
    scope.start(note(&trace, "ran"));
  }
  loop.drain();
  CHECK(trace.empty());
}

TEST_CASE("task: dropping one that never ran drops its arguments") {
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> watched = held;
  {
    auto keep = [](std::shared_ptr<int>) -> Task<> { co_return; };
    auto task = keep(std::move(held));
    CHECK_FALSE(watched.expired());
  }
  CHECK(watched.expired());
}

Task<int> twice(int value) {
  co_return 2 * value;
}

Task<int> thrower() {
  throw std::runtime_error("from below");
  co_return 0;
}

Task<> add_up(int* sum, Trace* trace) {
  auto four = twice(2);
  *sum += co_await four;
  auto bad = thrower();
  try {
    *sum += co_await bad;
  } catch (const std::runtime_error& error) {
    trace->push_back(error.what());
  }
}

TEST_CASE("task: values and errors reach the one who awaits") {
  Loop loop;
  int sum = 0;
  Trace trace;
  run(loop, add_up(&sum, &trace));
  CHECK(sum == 4);
  CHECK(trace == Trace{"from below"});
}

Task<int> count_down(int depth) {
  if (depth == 0) co_return 0;
  auto below = count_down(depth - 1);
  int result = co_await below;
  co_return result + 1;
}

Task<> into(Task<int> task, int* result) {
  *result = co_await task;
}

TEST_CASE("task: a long chain of completions does not grow the stack") {
  Loop loop;
  int result = 0;
  run(loop, into(count_down(20000), &result));
  CHECK(result == 20000);
}

Task<> await_value(Completion<std::string> completion, Trace* trace, std::string label) {
  const std::string& value = co_await completion;
  trace->push_back(label + " " + value);
}

TEST_CASE("completion: waiters resume on a later turn in the order of waiting") {
  Loop loop;
  Trace trace;
  Completion<std::string> completion(loop);
  TaskScope scope(loop, [](std::exception_ptr) {});
  scope.start(await_value(completion, &trace, "a"));
  scope.start(await_value(completion, &trace, "b"));
  loop.drain();
  CHECK_FALSE(completion.settled());
  completion.settle("x");
  CHECK(completion.settled());
  CHECK(trace.empty());
  loop.drain();
  CHECK(trace == Trace{"a x", "b x"});
}

TEST_CASE("completion: the first value stands") {
  Loop loop;
  Trace trace;
  Completion<std::string> completion(loop);
  completion.settle("first");
  completion.settle("second");
  CHECK(completion.value() == "first");
  run(loop, await_value(completion, &trace, "late"));
  CHECK(trace == Trace{"late first"});
}

TEST_CASE("completion: a dropped waiter is forgotten") {
  Loop loop;
  Trace trace;
  Completion<std::string> completion(loop);
  TaskScope kept(loop, [](std::exception_ptr) {});
  {
    TaskScope dropped(loop, [](std::exception_ptr) {});
    dropped.start(await_value(completion, &trace, "dropped"));
    kept.start(await_value(completion, &trace, "kept"));
    loop.drain();
  }
  completion.settle("x");
  loop.drain();
  CHECK(trace == Trace{"kept x"});
}

TEST_CASE("completion: a waiter dropped between value and turn is forgotten") {
  Loop loop;
  Trace trace;
  Completion<std::string> completion(loop);
  auto scope = std::make_optional<TaskScope>(loop, [](std::exception_ptr) {});
  scope->start(await_value(completion, &trace, "x"));
  loop.drain();
  completion.settle("x");
  scope.reset();
  loop.drain();
  CHECK(trace.empty());
}

Task<> drop_other(Completion<> completion, std::optional<TaskScope>* other, Trace* trace) {
  co_await completion;
  trace->push_back("first");
  other->reset();
}

Task<> note_after(Completion<> completion, Trace* trace) {
  co_await completion;
  trace->push_back("second");
}

TEST_CASE("completion: a waiter may drop the next one") {
  Loop loop;
  Trace trace;
  Completion<> completion(loop);
  TaskScope scope(loop, [](std::exception_ptr) {});
  std::optional<TaskScope> other;
  other.emplace(loop, [](std::exception_ptr) {});
  scope.start(drop_other(completion, &other, &trace));
  other->start(note_after(completion, &trace));
  loop.drain();
  completion.settle();
  loop.drain();
  CHECK(trace == Trace{"first"});
}

}  // namespace
}  // namespace stockade::test
