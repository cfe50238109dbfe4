// SPDX-License-Identifier: MIT
// The five ways to dispatch an event.
#include "framework/context.hpp"
#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

using std::chrono::milliseconds;

struct Asked {
  static constexpr std::string_view event = "asked/1";
  using Result = int;
  int value = 0;
};
struct Said {
  static constexpr std::string_view event = "said/1";
  std::string text;
};

template <class T>
T await(Loop& loop, Task<T> task) {
  std::optional<T> result;
  auto store = [](Task<T> inner, std::optional<T>* out) -> Task<> {
    T value = co_await inner;
    out->emplace(std::move(value));
  };
  run(loop, store(std::move(task), &result));
  return *result;
}

Task<std::optional<int>> later(Loop* loop, int delay, std::optional<int> answer, Trace* trace,
                               std::string label) {
  auto pause = sleep(*loop, milliseconds(delay));
  co_await pause;
  trace->push_back(label);
  if (answer && *answer < 0) throw std::runtime_error(label + " failed");
  co_return answer;
}

Task<> say_later(Loop* loop, int delay, Trace* trace, std::string label, bool fail) {
  trace->push_back(label + " starts");
  auto pause = sleep(*loop, milliseconds(delay));
  co_await pause;
  trace->push_back(label + " ends");
  if (fail) throw std::runtime_error(label);
}

TEST_CASE("35: a bare boolean means prepend") {
  Trace trace;
  Tree tree;
  tree.root.on<Said>([&](const Said&) { trace.push_back("a"); });
  tree.root.on<Said>([&](const Said&) { trace.push_back("b"); }, true);
  tree.root.on<Said>([&](const Said&) { trace.push_back("c"); }, {true});
  tree.root.emit(Said{});
  CHECK(trace == Trace{"c", "b", "a"});
}

TEST_CASE("37: emit does not wait for asynchronous listeners") {
  Trace trace;
  Tree tree;
  tree.root.on<Said>([&](Said) { return say_later(&tree.loop, 1, &trace, "slow", false); });
  tree.root.emit(Said{});
  CHECK(trace.empty());
  tree.loop.drain();
  CHECK(trace == Trace{"slow starts", "slow ends"});
}

TEST_CASE("37: what an asynchronous listener of emit throws is logged") {
  StandardError captured;
  Trace trace;
  Tree tree(LogLevel::error);
  tree.root.on<Said>(
      [&](Said) { return say_later(&tree.loop, 1, &trace, "listener error", true); });
  CHECK_NOTHROW(tree.root.emit(Said{}));
  tree.loop.drain();
  CHECK(count_of(captured.text(), "listener error") == 1);
}

TEST_CASE("40: serial awaits each in order and ends with the first answer") {
  Trace trace;
  Tree tree;
  tree.root.on<Asked>([&](Asked) { return later(&tree.loop, 3, std::nullopt, &trace, "none"); });
  tree.root.on<Asked>([&](Asked) { return later(&tree.loop, 1, 3, &trace, "three"); });
  tree.root.on<Asked>([&](Asked) { return later(&tree.loop, 1, 4, &trace, "four"); });
  CHECK(await(tree.loop, tree.root.serial(Asked{})) == 3);
  CHECK(trace == Trace{"none", "three"});
}

TEST_CASE("40: an error of a listener stops a serial dispatch") {
  Trace trace;
  Tree tree;
  tree.root.on<Asked>([&](Asked) { return later(&tree.loop, 1, -1, &trace, "first"); });
  tree.root.on<Asked>([&](Asked) { return later(&tree.loop, 1, 4, &trace, "second"); });
  CHECK_THROWS_WITH(await(tree.loop, tree.root.serial(Asked{})), "first failed");
  CHECK(trace == Trace{"first"});
}

TEST_CASE("event: serial takes the answers of listeners that do not wait") {
  Tree tree;
  tree.root.on<Asked>([](const Asked&) { return std::optional<int>(); });
  tree.root.on<Asked>([](const Asked& asked) { return asked.value + 1; });
  CHECK(await(tree.loop, tree.root.serial(Asked{4})) == 5);
  CHECK(await(tree.loop, tree.root.serial(Said{})) == std::nullopt);
}

TEST_CASE("event: bail ends with the first answer") {
  int calls = 0;
  Tree tree;
  tree.root.on<Asked>([&](const Asked&) { ++calls; });
  tree.root.on<Asked>([&](const Asked& asked) { return asked.value * 2; });
  tree.root.on<Asked>([&](const Asked&) { return ++calls; });
  CHECK(tree.root.bail(Asked{21}) == 42);
  CHECK(calls == 1);
  CHECK(tree.root.bail(Said{}) == std::nullopt);
}

TEST_CASE("41: parallel starts all, awaits all and throws all errors in order") {
  Trace trace;
  Tree tree;
  tree.root.on<Said>([&](Said) { return say_later(&tree.loop, 9, &trace, "a", true); });
  tree.root.on<Said>([&](Said) { return say_later(&tree.loop, 1, &trace, "b", true); });
  tree.root.on<Said>([&](Said) { return say_later(&tree.loop, 18, &trace, "c", false); });
  ManualClock clock(tree.loop);
  std::exception_ptr error;
  TaskScope scope(tree.loop, [&](std::exception_ptr thrown) { error = thrown; });
  scope.start(tree.root.parallel(Said{}));
  clock.advance(milliseconds(17));
  CHECK(error == nullptr);
  clock.advance(milliseconds(1));
  CHECK(trace == Trace{"a starts", "b starts", "c starts", "b ends", "a ends", "c ends"});
  REQUIRE(error != nullptr);
  Trace errors;
  try {
    std::rethrow_exception(error);
  } catch (const AggregateError& aggregate) {
    CHECK(aggregate.code() == "LISTENERS_FAILED");
    for (const auto& each : aggregate.errors()) errors.push_back(describe(each));
  }
  CHECK(errors == Trace{"a", "b"});
}

TEST_CASE("event: a listener of parallel that throws at once does not stop the others") {
  Trace trace;
  Tree tree;
  tree.root.on<Said>([](const Said&) { throw std::runtime_error("now"); });
  tree.root.on<Said>([&](const Said& said) { trace.push_back(said.text); });
  CHECK(failure_of([&] { run(tree.loop, tree.root.parallel(Said{"heard"})); }).text == "now");
  CHECK(trace == Trace{"heard"});
}

TEST_CASE("42: each listener of a waterfall wraps those after it") {
  Trace trace;
  Tree tree;
  auto add = [](const Asked& asked, const Next<Asked>& next) { return asked.value + next(); };
  const Next<Asked> inner = [] { return 2; };
  CHECK(tree.root.waterfall(Asked{1}, inner) == 2);
  tree.root.on<Asked>(add);
  tree.root.on<Asked>(add);
  CHECK(tree.root.waterfall(Asked{1}, inner) == 4);
  tree.root.on<Asked>([](const Asked& asked, const Next<Asked>&) { return asked.value; });
  tree.root.on<Asked>([&](const Asked&, const Next<Asked>& next) {
    trace.push_back("fourth");
    return next();
  });
  CHECK(tree.root.waterfall(Asked{1}, inner) == 3);
  CHECK(trace.empty());
}

struct Tag {
  static constexpr std::string_view service = "tag/1";
};

TEST_CASE("43: a filter chooses listeners by their scope") {
  Trace trace;
  Tree tree;
  Context one = tree.root.isolate(Tag::service, "1");
  Context two = tree.root.isolate(Tag::service, "2");
  one.on<Said>([&](const Said&) { trace.push_back("1"); });
  two.on<Said>([&](const Said&) { trace.push_back("2"); });
  two.on<Said>([&](const Said&) { trace.push_back("global"); }, {false, true});
  tree.root.emit(Said{}, one.sharing(Tag::service));
  CHECK(trace == Trace{"1", "global"});
  trace.clear();
  tree.root.emit(Said{});
  CHECK(trace == Trace{"1", "2", "global"});
}

TEST_CASE("44: each dispatch is told before it is made") {
  Trace told;
  Tree tree;
  auto observer = tree.root.on<EventDispatched>([&](const EventDispatched& dispatched) {
    std::string line;
    switch (dispatched.mode) {
      case DispatchMode::emit:
        line = "emit";
        break;
      case DispatchMode::serial:
        line = "serial";
        break;
      case DispatchMode::bail:
        line = "bail";
        break;
      case DispatchMode::waterfall:
        line = "waterfall";
        break;
    }
    line += " " + std::string(dispatched.name);
    if (dispatched.name == Asked::event)
      line += " " + std::to_string(static_cast<const Asked*>(dispatched.payload)->value);
    if (dispatched.filtered) line += " filtered";
    told.push_back(line);
  });
  tree.root.on<Asked>([&](const Asked&) { told.push_back("heard"); });
  tree.root.emit(Asked{1});
  run(tree.loop, tree.root.parallel(Asked{2}));
  await(tree.loop, tree.root.serial(Asked{3}));
  tree.root.bail(Asked{4});
  tree.root.waterfall(Asked{5}, Next<Asked>([] { return 0; }));
  tree.root.emit(Said{}, tree.root.sharing("x"));
  CHECK(told == Trace{"emit asked/1 1", "heard", "emit asked/1 2", "heard", "serial asked/1 3",
                      "heard", "bail asked/1 4", "heard", "waterfall asked/1 5", "heard",
                      "emit said/1 filtered"});
  // The framework's own are not told.
  told.clear();
  auto fiber = tree.root.plugin(plugin("p", {}, [](const Context&, const nlohmann::json&) {}), {});
  tree.settle(fiber);
  CHECK(told.empty());
}

TEST_CASE("45: a second next goes straight to the inner function") {
  int inner_calls = 0;
  Trace trace;
  Tree tree;
  tree.root.on<Asked>([](const Asked&, const Next<Asked>& next) { return next() * 100 + next(); });
  tree.root.on<Asked>([&](const Asked&, const Next<Asked>& next) {
    trace.push_back("further");
    return next() + 10;
  });
  CHECK(tree.root.waterfall(Asked{}, Next<Asked>([&] { return ++inner_calls; })) == 1102);
  CHECK(trace == Trace{"further"});
  CHECK(inner_calls == 2);
}

TEST_CASE("event: a listener that is removed during a dispatch is skipped") {
  Trace trace;
  Tree tree;
  std::optional<Disposer> second;
  tree.root.on<Said>([&](const Said&) {
    trace.push_back("first");
    TaskScope scope(tree.loop, [](std::exception_ptr) {});
    scope.start_now(second->dispose());
  });
  second.emplace(tree.root.on<Said>([&](const Said&) { trace.push_back("second"); }));
  tree.root.on<Said>([&](const Said&) { trace.push_back("third"); });
  tree.root.emit(Said{});
  CHECK(trace == Trace{"first", "third"});
}

}  // namespace
}  // namespace stockade::test
