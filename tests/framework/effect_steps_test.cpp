// SPDX-License-Identifier: MIT
// Effects that are made of steps, and work in the background.
#include "framework/context.hpp"
#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

using std::chrono::milliseconds;

struct Ping {
  static constexpr std::string_view event = "ping/1";
};

auto note(Trace& trace, std::string label) {
  return [&trace, label = std::move(label)] { trace.push_back(label); };
}

Task<> slow_note(Loop* loop, Trace* trace, std::string label) {
  trace->push_back(label + " begins");
  auto pause = sleep(*loop, milliseconds(5));
  co_await pause;
  trace->push_back(label + " ends");
}

TEST_CASE("26: steps are listed below their effect and undone in reverse") {
  Trace trace;
  Tree tree;
  auto whole = tree.root.steps("whole", [&](Context c) {
    c.effect("1", note(trace, "1"));
    c.on<Ping>([](const Ping&) {});
    c.effect("2", note(trace, "2"));
    c.steps("nested", [&](Context inner) { inner.effect("3", note(trace, "3")); });
  });
  CHECK(tree.root.fiber()->effects() == Trace{"whole"});
  auto listing = tree.root.fiber()->effect_tree();
  REQUIRE(listing.size() == 1);
  Trace labels;
  for (const auto& step : listing[0].steps) labels.push_back(step.label);
  CHECK(labels == Trace{"1", "ctx.on(\"ping/1\")", "2", "nested"});
  REQUIRE(listing[0].steps[3].steps.size() == 1);
  CHECK(listing[0].steps[3].steps[0].label == "3");
  tree.undo(whole);
  CHECK(trace == Trace{"3", "2", "1"});
  CHECK(tree.root.fiber()->effects().empty());
  tree.undo(whole);
  CHECK(trace.size() == 3);
}

TEST_CASE("27: a set-up that throws has undone what it registered when the caller hears of it") {
  Trace trace;
  Tree tree;
  auto create = [&] {
    tree.root.steps("half", [&](Context c) {
      c.effect("1", note(trace, "1"));
      throw std::runtime_error("test");
    });
  };
  CHECK_THROWS_WITH(create(), "test");
  CHECK(trace == Trace{"1"});
  CHECK(tree.root.fiber()->effects().empty());
}

Task<> slow_setup(Context context, Trace* trace) {
  trace->push_back("1");
  auto pause = sleep(context.loop(), milliseconds(100));
  co_await pause;
  context.effect("x", [trace] { trace->push_back("2"); });
}

TEST_CASE("28: an undo waits for the set-up and comes right after it") {
  Trace trace;
  Tree tree;
  ManualClock clock(tree.loop);
  auto whole = tree.root.steps("slow", [&](Context c) { return slow_setup(std::move(c), &trace); });
  tree.root.start("undo", whole.dispose());
  clock.advance(milliseconds(99));
  CHECK(trace == Trace{"1"});
  clock.advance(milliseconds(1));
  CHECK(trace == Trace{"1", "2"});
  CHECK(tree.root.fiber()->effects().empty());
}

TEST_CASE("28: so does the disposal of the fiber") {
  Trace trace;
  Tree tree;
  ManualClock clock(tree.loop);
  auto fiber = tree.root.plugin(
      plugin("p", {},
             [&](const Context& c, const nlohmann::json&) {
               c.steps("slow", [&](Context inner) { return slow_setup(std::move(inner), &trace); });
             }),
      {});
  clock.advance(milliseconds(10));
  auto disposed = fiber->dispose();
  clock.advance(milliseconds(50));
  CHECK_FALSE(disposed.settled());
  clock.advance(milliseconds(50));
  CHECK(disposed.settled());
  CHECK(trace == Trace{"1", "2"});
}

TEST_CASE("31: the steps of one effect are undone strictly one after the other") {
  Trace trace;
  Tree tree;
  auto whole = tree.root.steps("one", [&](Context c) {
    c.effect("1", note(trace, "1"));
    c.effect("2", Undo([&] { return slow_note(&tree.loop, &trace, "2"); }));
    c.effect("3", note(trace, "3"));
  });
  tree.undo(whole);
  CHECK(trace == Trace{"3", "2 begins", "2 ends", "1"});
}

Task<> failing_setup(Context context, Trace* trace) {
  context.effect("x", [trace] { trace->push_back("undone"); });
  auto pause = sleep(context.loop(), milliseconds(1));
  co_await pause;
  throw std::runtime_error("set-up error");
}

TEST_CASE("32: a set-up that fails later has undone itself when it is awaited") {
  Trace trace;
  Tree tree;
  auto whole =
      tree.root.steps("failing", [&](Context c) { return failing_setup(std::move(c), &trace); });
  CHECK_THROWS_WITH(run(tree.loop, whole.ready()), "set-up error");
  CHECK(trace == Trace{"undone"});
  tree.loop.drain();
  CHECK(tree.root.fiber()->effects().empty());
}

Task<> restarting_setup(Context context, bool* restarted, Trace* trace) {
  if (!std::exchange(*restarted, true)) {
    auto unused = context.fiber()->restart();
  }
  auto pause = sleep(context.loop(), milliseconds(10));
  co_await pause;
  Loop* loop = &context.loop();
  context.effect("x", Undo([loop, trace] { return slow_note(loop, trace, "undo"); }));
  trace->push_back("set up");
}

TEST_CASE("34: a restart that a set-up asks for waits for it and its undo") {
  Trace trace;
  bool restarted = false;
  Tree tree;
  auto fiber =
      tree.root.plugin(plugin("p", {},
                              [&](const Context& c, const nlohmann::json&) {
                                trace.push_back("load");
                                c.steps("s", [&](Context inner) {
                                  return restarting_setup(std::move(inner), &restarted, &trace);
                                });
                              }),
                       {});
  run_until(tree.loop, [&] { return restarted; });
  tree.settle(fiber);
  CHECK(trace == Trace{"load", "set up", "undo begins", "undo ends", "load"});
  CHECK(fiber->state() == FiberState::active);
}

TEST_CASE("34: also where the set-up throws") {
  Trace trace;
  bool restarted = false;
  Tree tree;
  auto body = [&](const Context& c, const nlohmann::json&) {
    trace.push_back("load");
    try {
      c.steps("s", [&](Context inner) {
        inner.effect("x", Undo([&] { return slow_note(&tree.loop, &trace, "undo"); }));
        if (std::exchange(restarted, true)) return;
        auto unused = c.fiber()->restart();
        throw std::runtime_error("no");
      });
    } catch (const std::runtime_error&) {
    }
  };
  auto fiber = tree.root.plugin(plugin("p", {}, body), {});
  tree.settle(fiber);
  CHECK(trace == Trace{"load", "undo begins", "undo ends", "load"});
}

TEST_CASE("effect: a disposal joins an undo that is under way") {
  Trace trace;
  Tree tree;
  std::optional<Disposer> effect;
  auto fiber =
      tree.root.plugin(plugin("p", {},
                              [&](const Context& c, const nlohmann::json&) {
                                effect.emplace(c.effect(
                                    "x", Undo([&] { return slow_note(&tree.loop, &trace, "x"); })));
                              }),
                       {});
  tree.settle(fiber);
  tree.root.start("undo", effect->dispose());
  run_until(tree.loop, [&] { return !trace.empty(); });
  tree.dispose(fiber);
  CHECK(trace == Trace{"x begins", "x ends"});
}

TEST_CASE("effect: a caller that is dropped does not leave its fiber undisposable") {
  Trace trace;
  Tree tree;
  std::optional<Disposer> effect;
  auto fiber =
      tree.root.plugin(plugin("p", {},
                              [&](const Context& c, const nlohmann::json&) {
                                effect.emplace(c.effect(
                                    "x", Undo([&] { return slow_note(&tree.loop, &trace, "x"); })));
                              }),
                       {});
  tree.settle(fiber);
  {
    TaskScope scope(tree.loop, [](std::exception_ptr) {});
    scope.start(effect->dispose());
    run_until(tree.loop, [&] { return !trace.empty(); });
  }
  tree.dispose(fiber);
  CHECK(fiber->state() == FiberState::disposed);
}

Task<> tick(Loop* loop, int* ticks) {
  for (;;) {
    auto pause = sleep(*loop, milliseconds(10));
    co_await pause;
    ++*ticks;
  }
}

Task<> fail_later(Loop* loop) {
  auto pause = sleep(*loop, milliseconds(1));
  co_await pause;
  throw std::runtime_error("work error");
}

TEST_CASE("effect: background work ends with its fiber") {
  int ticks = 0;
  Tree tree;
  ManualClock clock(tree.loop);
  auto fiber = tree.root.plugin(plugin("p", {},
                                       [&](const Context& c, const nlohmann::json&) {
                                         c.start("ticking", tick(&tree.loop, &ticks));
                                       }),
                                {});
  clock.advance(milliseconds(35));
  CHECK(ticks == 3);
  CHECK(fiber->effects() == Trace{"ticking"});
  fiber->dispose();
  clock.advance(milliseconds(100));
  CHECK(fiber->state() == FiberState::disposed);
  CHECK(ticks == 3);
}

TEST_CASE("effect: background work that fails is logged and forgotten") {
  StandardError captured;
  Tree tree(LogLevel::error);
  tree.root.start("failing", fail_later(&tree.loop));
  CHECK(tree.root.fiber()->effects() == Trace{"failing"});
  tree.loop.drain();
  CHECK(tree.root.fiber()->effects().empty());
  CHECK(count_of(captured.text(), "work error") == 1);
}

}  // namespace
}  // namespace stockade::test
