// SPDX-License-Identifier: MIT
// Config updates, restarts, and what is told of a fiber's life.
#include "framework/config.hpp"
#include "framework/context.hpp"
#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

struct Foo {
  static constexpr std::string_view service = "foo/1";
};

// Records each load with its config and each unload; throws for {"bad": true}; its check refuses
// {"invalid": true}.
PluginDefinition recorder(Trace& trace, std::vector<std::string> inject = {}) {
  auto definition =
      plugin("recorder", std::move(inject), [&trace](const Context& c, const json& config) {
        trace.push_back("load " + config.dump());
        c.effect("x", [&trace] { trace.push_back("unload"); });
        if (config.contains("bad")) throw std::runtime_error("bad config");
      });
  definition.check_config = [](const json& config) {
    if (config.contains("invalid")) throw_config_issues("recorder", {{"$.invalid", "refused"}});
  };
  return definition;
}

Task<> slow_body(Context context, Trace* trace, milliseconds time) {
  trace->push_back("load");
  Loop* loop = &context.loop();
  context.effect("slow", Undo([loop, trace, time]() -> Task<> {
                   trace->push_back("unload");
                   return sleep(*loop, time);
                 }));
  auto pause = sleep(context.loop(), time);
  co_await pause;
}

PluginDefinition slow(Trace& trace, std::vector<std::string> inject, milliseconds time) {
  PluginDefinition definition;
  definition.name = "slow";
  definition.inject = std::move(inject);
  definition.apply = [&trace, time](Context context, const json&) {
    return slow_body(std::move(context), &trace, time);
  };
  return definition;
}

TEST_CASE("1: the root has uid 0") {
  Tree tree;
  CHECK(tree.root.fiber()->uid() == 0U);
}

TEST_CASE("4: each step of a life is told and the uid goes when disposal begins") {
  Trace steps;
  std::optional<std::uint64_t> when_disposing = 1;
  Tree tree;
  auto status = tree.root.on<FiberStatus>([&](const FiberStatus& told) {
    steps.push_back(std::to_string(static_cast<int>(told.from)) + ">" +
                    std::to_string(static_cast<int>(told.to)));
    if (told.to == FiberState::unloading) when_disposing = told.fiber.uid();
  });
  auto fiber = tree.root.plugin(plugin("life", {}, [](const Context&, const json&) {}), {});
  tree.settle(fiber);
  CHECK(fiber->uid().has_value());
  tree.dispose(fiber);
  CHECK(steps == Trace{"0>1", "1>2", "2>5", "5>4"});
  CHECK_FALSE(when_disposing.has_value());
}

TEST_CASE("5: the failing path goes through unloading") {
  Trace steps;
  Tree tree;
  auto status = tree.root.on<FiberStatus>(
      [&](const FiberStatus& told) { steps.push_back(std::to_string(static_cast<int>(told.to))); });
  auto fiber = tree.root.plugin(
      plugin("bad", {}, [](const Context&, const json&) { throw std::runtime_error("no"); }), {});
  CHECK_THROWS(tree.settle(fiber));
  CHECK(steps == Trace{"1", "5", "3"});
}

TEST_CASE("12: neither a load nor an unload is interrupted, by the clock") {
  Trace trace;
  Tree tree;
  ManualClock clock(tree.loop);
  auto fiber = tree.root.plugin(slow(trace, {"foo/1"}, milliseconds(1000)), {});
  auto first = tree.root.provide<Foo>(std::make_shared<Foo>());  // at 0
  clock.advance(milliseconds(400));
  tree.root.start("withdraw", first.dispose());
  clock.advance(milliseconds(400));
  CHECK(fiber->state() == FiberState::loading);  // 800
  clock.advance(milliseconds(400));
  CHECK(fiber->state() == FiberState::unloading);  // 1200
  tree.root.provide<Foo>(std::make_shared<Foo>());
  clock.advance(milliseconds(799));
  CHECK(fiber->state() == FiberState::unloading);  // 1999
  clock.advance(milliseconds(201));
  CHECK(fiber->state() == FiberState::loading);  // 2200
  clock.advance(milliseconds(1000));
  CHECK(fiber->state() == FiberState::active);  // 3200
  CHECK(trace == Trace{"load", "unload", "load"});
  tree.root.start("end", wait_for(fiber->dispose()));
  clock.advance(milliseconds(1000));
  CHECK(fiber->state() == FiberState::disposed);
}

Task<> hold_after(Context context, Completion<> gate, Trace* trace) {
  trace->push_back("start");
  co_await gate;
  trace->push_back("end");
  context.effect("late", [trace] { trace->push_back("cleanup"); });
}

TEST_CASE("15: what a body holds is undone although its fiber is to go") {
  Trace trace;
  Tree tree;
  Completion<> gate(tree.loop);
  PluginDefinition definition;
  definition.name = "late";
  definition.apply = [&](Context c, const json&) { return hold_after(std::move(c), gate, &trace); };
  auto fiber = tree.root.plugin(definition, {});
  run_until(tree.loop, [&] { return fiber->state() == FiberState::loading; });
  auto disposed = fiber->dispose();
  CHECK(fiber->state() == FiberState::loading);
  gate.settle();
  run(tree.loop, wait_for(disposed));
  CHECK(trace == Trace{"start", "end", "cleanup"});
  CHECK(fiber->state() == FiberState::disposed);
}

TEST_CASE("17: an invalid config changes nothing") {
  Trace trace;
  Tree tree;
  auto fiber = tree.root.plugin(recorder(trace), {{"a", 1}});
  tree.settle(fiber);
  auto failure = failure_of([&] { auto never = fiber->update({{"invalid", true}}); });
  CHECK(failure.code == "CONFIG_INVALID");
  tree.loop.drain();
  CHECK(fiber->state() == FiberState::active);
  CHECK(fiber->config() == json{{"a", 1}});
  CHECK(fiber->effects() == Trace{"x"});
  CHECK(trace == Trace{"load {\"a\":1}"});
}

TEST_CASE("18: a valid config unloads and loads again") {
  Trace trace;
  Tree tree;
  auto fiber = tree.root.plugin(recorder(trace), {{"a", 1}});
  tree.settle(fiber);
  run(tree.loop, fiber->update({{"a", 2}}));
  CHECK(fiber->state() == FiberState::active);
  CHECK(trace == Trace{"load {\"a\":1}", "unload", "load {\"a\":2}"});
}

TEST_CASE("18: a body that throws for the new config fails the fiber") {
  Trace trace;
  Tree tree;
  auto fiber = tree.root.plugin(recorder(trace), {{"a", 1}});
  tree.settle(fiber);
  CHECK_THROWS_WITH(run(tree.loop, fiber->update({{"bad", 1}})), "bad config");
  CHECK(fiber->state() == FiberState::failed);
  CHECK(fiber->effects().empty());
}

TEST_CASE("20: an observer that throws takes the mounting back") {
  bool ran = false;
  Tree tree;
  auto observer = tree.root.on<FiberMounted>([](const FiberMounted& told) {
    if (told.fiber.name() == "unwanted") throw std::runtime_error("observer error");
  });
  const auto before = tree.root.fiber()->registry().fibers().size();
  auto body = [&](const Context&, const json&) { ran = true; };
  CHECK_THROWS_WITH(tree.root.plugin(plugin("unwanted", {}, body), {}), "observer error");
  tree.loop.drain();
  CHECK_FALSE(ran);
  CHECK(tree.root.fiber()->children().empty());
  CHECK(tree.root.fiber()->registry().fibers().size() == before);
}

TEST_CASE("20: an observer that throws at the end stops nobody") {
  StandardError captured;
  Tree tree(LogLevel::error);
  auto first = tree.root.on<FiberDisposing>(
      [](const FiberDisposing&) { throw std::runtime_error("observer error"); });
  auto fiber = tree.root.plugin(plugin("p", {}, [](const Context&, const json&) {}), {});
  tree.settle(fiber);
  tree.dispose(fiber);
  CHECK(fiber->state() == FiberState::disposed);
  CHECK(count_of(captured.text(), "observer error") == 1);
}

TEST_CASE("21: an observer can add a need") {
  int ran = 0;
  Tree tree;
  auto observer =
      tree.root.on<FiberMounted>([](const FiberMounted& told) { told.fiber.require("foo/1"); });
  auto fiber = tree.root.plugin(plugin("p", {}, [&](const Context&, const json&) { ++ran; }), {});
  tree.settle(fiber);
  CHECK(fiber->state() == FiberState::pending);
  CHECK(fiber->waiting_for() == Trace{"foo/1"});
  tree.root.provide<Foo>(std::make_shared<Foo>());
  tree.settle(fiber);
  CHECK(ran == 1);
}

TEST_CASE("23: all fibers of one plugin are found by its name") {
  Tree tree;
  auto definition = plugin("two", {}, [](const Context&, const json&) {});
  auto first = tree.root.plugin(definition, {}, "a");
  auto second = tree.root.plugin(definition, {}, "b");
  tree.settle(second);
  std::vector<std::shared_ptr<Fiber>> found;
  for (Fiber* fiber : tree.root.fiber()->registry().fibers())
    if (fiber->definition().name == "two") found.push_back(fiber->shared_from_this());
  CHECK(found == std::vector<std::shared_ptr<Fiber>>{first, second});
  for (const auto& fiber : found) tree.dispose(fiber);
  CHECK(first->state() == FiberState::disposed);
  CHECK(second->state() == FiberState::disposed);
}

TEST_CASE("24: a good config recovers a failed fiber") {
  Trace trace;
  Tree tree;
  auto fiber = tree.root.plugin(recorder(trace), {{"bad", 1}});
  CHECK_THROWS(tree.settle(fiber));
  run(tree.loop, fiber->update({{"a", 1}}));
  CHECK(fiber->state() == FiberState::active);
  CHECK(fiber->error() == nullptr);
}

TEST_CASE("24: one that waits keeps the config unchecked until it loads") {
  Trace trace;
  Tree tree;
  auto fiber = tree.root.plugin(recorder(trace, {"foo/1"}), {{"a", 1}});
  tree.settle(fiber);
  CHECK_NOTHROW(run(tree.loop, fiber->update({{"invalid", true}})));
  CHECK(fiber->state() == FiberState::pending);
  CHECK(fiber->config() == json{{"invalid", true}});
  tree.root.provide<Foo>(std::make_shared<Foo>());
  CHECK(failure_of([&] { tree.settle(fiber); }).code == "CONFIG_INVALID");
  CHECK(trace.empty());
}

TEST_CASE("24: a listener that does not go on vetoes an update") {
  Trace trace;
  Tree tree;
  auto fiber = tree.root.plugin(recorder(trace), {{"a", 1}});
  tree.settle(fiber);
  auto veto = tree.root.on<FiberUpdating>([](const FiberUpdating&, const Next<FiberUpdating>&) {});
  run(tree.loop, fiber->update({{"a", 2}}));
  CHECK(fiber->config() == json{{"a", 1}});
  CHECK(trace.size() == 1);
  tree.undo(veto);
  auto pass = tree.root.on<FiberUpdating>(
      [](const FiberUpdating&, const Next<FiberUpdating>& next) { next(); });
  run(tree.loop, fiber->update({{"a", 2}}));
  CHECK(trace.back() == "load {\"a\":2}");
}

Task<> gated(Context context, Completion<> gate, Trace* trace, json config) {
  trace->push_back("load " + config.dump());
  context.effect("x", [trace, config] { trace->push_back("unload " + config.dump()); });
  co_await gate;
}

TEST_CASE("L1: the last of several updates during a load is what runs") {
  Trace trace;
  Tree tree;
  Completion<> gate(tree.loop);
  PluginDefinition definition;
  definition.name = "gated";
  definition.apply = [&](Context c, const json& config) {
    return gated(std::move(c), gate, &trace, config);
  };
  auto fiber = tree.root.plugin(definition, 1);
  run_until(tree.loop, [&] { return fiber->state() == FiberState::loading; });
  auto second = fiber->update(2);
  auto third = fiber->update(3);
  gate.settle();
  run(tree.loop, std::move(third));
  CHECK(fiber->config() == json(3));
  CHECK(fiber->state() == FiberState::active);
  // Each load has its unload, and no two live at once.
  CHECK(trace == Trace{"load 1", "unload 1", "load 3"});
}

TEST_CASE("L1: a failed fiber is not entered again when its services change") {
  Trace trace;
  Tree tree;
  auto first = tree.root.provide<Foo>(std::make_shared<Foo>());
  auto fiber = tree.root.plugin(recorder(trace, {"foo/1"}), {{"bad", 1}});
  CHECK_THROWS(tree.settle(fiber));
  tree.undo(first);
  tree.root.provide<Foo>(std::make_shared<Foo>());
  tree.loop.drain();
  CHECK(fiber->state() == FiberState::failed);
  CHECK(trace.size() == 2);  // one load and its unload
  run(tree.loop, fiber->update({{"a", 1}}));
  CHECK(fiber->state() == FiberState::active);
  CHECK(failure_of([&] { auto never = fiber->update({{"invalid", 1}}); }).code == "CONFIG_INVALID");
  CHECK(fiber->state() == FiberState::active);
}

TEST_CASE("L1: a provider that comes and goes during a load causes one more load") {
  Trace trace;
  Tree tree;
  ManualClock clock(tree.loop);
  auto first = tree.root.provide<Foo>(std::make_shared<Foo>());
  auto fiber = tree.root.plugin(slow(trace, {"foo/1"}, milliseconds(10)), {});
  clock.advance(milliseconds(1));
  tree.root.start("churn", first.dispose());
  clock.advance(milliseconds(0));
  tree.root.provide<Foo>(std::make_shared<Foo>());
  clock.advance(milliseconds(100));
  CHECK(fiber->state() == FiberState::active);
  CHECK(trace == Trace{"load", "unload", "load"});
  tree.root.start("end", wait_for(fiber->dispose()));
  clock.advance(milliseconds(100));
}

TEST_CASE("fiber: a restart unloads and loads with the same config") {
  Trace trace;
  Tree tree;
  auto fiber = tree.root.plugin(recorder(trace), {{"a", 1}});
  tree.settle(fiber);
  run(tree.loop, fiber->restart());
  CHECK(trace == Trace{"load {\"a\":1}", "unload", "load {\"a\":1}"});
  tree.dispose(fiber);
  CHECK(failure_of([&] { auto never = fiber->restart(); }).code == "INACTIVE_EFFECT");
  CHECK(failure_of([&] { auto never = fiber->update({}); }).code == "INACTIVE_EFFECT");
}

}  // namespace
}  // namespace stockade::test
