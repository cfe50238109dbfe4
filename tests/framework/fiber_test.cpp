// SPDX-License-Identifier: MIT
#include "framework/fiber.hpp"

#include "framework/config.hpp"
#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

struct Number {
  static constexpr std::string_view service = "number/1";
  int value = 0;
};

std::shared_ptr<Number> number(int value) {
  return std::make_shared<Number>(Number{value});
}

Task<> traced_undo(Trace* trace, std::string label, Completion<> gate) {
  trace->push_back(label + " begins");
  co_await gate;
  trace->push_back(label + " ends");
}

Task<> gated_body(Context context, Trace* trace, Completion<> body_gate, Completion<> undo_gate) {
  trace->push_back("load begins");
  context.effect("gated",
                 Undo([trace, undo_gate] { return traced_undo(trace, "unload", undo_gate); }));
  co_await body_gate;
  trace->push_back("load ends");
}

PluginDefinition gated(std::vector<std::string> inject, Trace* trace, Completion<> body_gate,
                       Completion<> undo_gate) {
  PluginDefinition definition;
  definition.name = "gated";
  definition.inject = std::move(inject);
  definition.apply = [=](Context context, const nlohmann::json&) {
    return gated_body(std::move(context), trace, body_gate, undo_gate);
  };
  return definition;
}

TEST_CASE("fiber: the root is active and named root") {
  Tree tree;
  const Fiber& root = *tree.root.fiber();
  CHECK(root.root());
  CHECK(root.state() == FiberState::active);
  CHECK(root.name() == "root");
  CHECK(root.effects().empty());
  CHECK(root.children().empty());
}

TEST_CASE("fiber: state numbers are those of diagnostics") {
  CHECK(static_cast<int>(FiberState::pending) == 0);
  CHECK(static_cast<int>(FiberState::loading) == 1);
  CHECK(static_cast<int>(FiberState::active) == 2);
  CHECK(static_cast<int>(FiberState::failed) == 3);
  CHECK(static_cast<int>(FiberState::disposed) == 4);
  CHECK(static_cast<int>(FiberState::unloading) == 5);
}

TEST_CASE("fiber: the body runs once on a later turn with its config") {
  std::vector<nlohmann::json> seen;
  Tree tree;
  auto fiber = tree.root.plugin(
      plugin("one", {},
             [&](const Context&, const nlohmann::json& config) { seen.push_back(config); }),
      {{"foo", "bar"}});
  CHECK(fiber->state() == FiberState::pending);
  CHECK(seen.empty());
  tree.settle(fiber);
  REQUIRE(seen.size() == 1);
  CHECK(seen[0] == nlohmann::json{{"foo", "bar"}});
  CHECK(fiber->state() == FiberState::active);
}

TEST_CASE("fiber: a plugin without a body is refused") {
  Tree tree;
  PluginDefinition empty;
  empty.name = "empty";
  auto failure = failure_of([&] { tree.root.plugin(empty, {}); });
  CHECK(failure.code == "PLUGIN_INVALID");
  CHECK(failure.operand == "empty");
  CHECK(tree.root.fiber()->children().empty());
}

TEST_CASE("fiber: a healthy life is logged state by state") {
  StandardError captured;
  Tree tree(LogLevel::debug);
  auto fiber =
      tree.root.plugin(plugin("life", {}, [](const Context&, const nlohmann::json&) {}), {});
  tree.settle(fiber);
  tree.dispose(fiber);
  auto text = captured.text();
  std::size_t at = 0;
  for (const char* step : {"life: pending > loading", "life: loading > active",
                           "life: active > unloading", "life: unloading > disposed"}) {
    auto next = text.find(step, at);
    INFO(step);
    CHECK(next != std::string::npos);
    if (next != std::string::npos) at = next;
  }
}

struct Ping {
  static constexpr std::string_view event = "ping/1";
};

TEST_CASE("fiber: a body that throws fails its fiber alone") {
  StandardError captured;
  Trace calls;
  Tree tree(LogLevel::error);
  auto body = [&](const Context& context, const nlohmann::json& config) {
    context.on<Ping>([&calls, config](const Ping&) { calls.push_back(config.dump()); });
    if (!config.contains("foo")) throw std::runtime_error("plugin error");
  };
  auto bad = tree.root.plugin(plugin("twice", {}, body), nlohmann::json::object(), "bad");
  auto good = tree.root.plugin(plugin("twice", {}, body), {{"foo", 1}}, "good");
  CHECK_THROWS_WITH(tree.settle(bad), "plugin error");
  tree.settle(good);
  CHECK(bad->state() == FiberState::failed);
  CHECK(bad->effects().empty());
  CHECK(describe(bad->error()) == "plugin error");
  CHECK(good->state() == FiberState::active);
  CHECK(good->error() == nullptr);
  tree.root.emit(Ping{});
  CHECK(calls == Trace{"{\"foo\":1}"});
  CHECK(count_of(captured.text(), "plugin error") == 1);
}

TEST_CASE("fiber: a failed fiber can be disposed") {
  Tree tree;
  auto fiber = tree.root.plugin(
      plugin("bad", {},
             [](const Context&, const nlohmann::json&) { throw std::runtime_error("no"); }),
      {});
  CHECK_THROWS(tree.settle(fiber));
  tree.dispose(fiber);
  CHECK(fiber->state() == FiberState::disposed);
  CHECK_NOTHROW(tree.settle(fiber));
}

TEST_CASE("fiber: an error that is no exception object is described") {
  Tree tree;
  auto fiber = tree.root.plugin(
      plugin("odd", {}, [](const Context&, const nlohmann::json&) { throw 5; }), {});
  CHECK_THROWS(tree.settle(fiber));
  CHECK_THAT(describe(fiber->error()), ContainsSubstring("no std::exception"));
}

TEST_CASE("fiber: a config that the check refuses never reaches the body") {
  StandardError captured;
  bool ran = false;
  Tree tree(LogLevel::error);
  auto definition =
      plugin("checked", {}, [&](const Context&, const nlohmann::json&) { ran = true; });
  definition.check_config = [](const nlohmann::json&) {
    throw_config_issues("checked", {{"$.a.b", "bad"}, {"$", "worse"}});
  };
  auto fiber = tree.root.plugin(definition, {});
  auto failure = failure_of([&] { tree.settle(fiber); });
  CHECK(failure.code == "CONFIG_INVALID");
  CHECK_THAT(failure.text, ContainsSubstring("$.a.b: bad") && ContainsSubstring("$: worse"));
  CHECK_FALSE(ran);
  CHECK(fiber->state() == FiberState::failed);
  CHECK(count_of(captured.text(), "invalid config") == 1);
}

TEST_CASE("fiber: nothing can be added to a disposed fiber") {
  Tree tree;
  auto noop = [](const Context&, const nlohmann::json&) {};
  auto fiber = tree.root.plugin(plugin("gone", {}, noop), {});
  tree.settle(fiber);
  Context context(fiber, fiber->scope());
  tree.dispose(fiber);
  CHECK(failure_of([&] { context.effect("x", [] {}); }).code == "INACTIVE_EFFECT");
  CHECK(failure_of([&] { context.on<Ping>([](const Ping&) {}); }).code == "INACTIVE_EFFECT");
  CHECK(failure_of([&] { context.provide<Number>(number(1)); }).code == "INACTIVE_EFFECT");
  CHECK(failure_of([&] { context.plugin(plugin("child", {}, noop), {}); }).code ==
        "INACTIVE_EFFECT");
  CHECK(tree.root.find<Number>() == nullptr);
}

TEST_CASE("fiber: nothing can be added while its undos run") {
  Trace codes;
  Tree tree;
  auto fiber = tree.root.plugin(
      plugin("late", {},
             [&](const Context& context, const nlohmann::json&) {
               context.effect("try", [&codes, context] {
                 codes.push_back(failure_of([&] { context.effect("x", [] {}); }).code);
                 codes.push_back(failure_of([&] { context.on<Ping>([](const Ping&) {}); }).code);
               });
             }),
      {});
  tree.settle(fiber);
  tree.dispose(fiber);
  CHECK(codes == Trace{"INACTIVE_EFFECT", "INACTIVE_EFFECT"});
  CHECK(fiber->effects().empty());
}

TEST_CASE("fiber: disposing a parent disposes what is nested in it") {
  int calls = 0;
  Tree tree;
  auto count = [&calls](const Ping&) { ++calls; };
  auto inner =
      plugin("inner", {}, [=](const Context& c, const nlohmann::json&) { c.on<Ping>(count); });
  auto middle = plugin("middle", {}, [=](const Context& c, const nlohmann::json&) {
    c.on<Ping>(count);
    c.plugin(inner, {});
  });
  auto outer = tree.root.plugin(plugin("outer", {},
                                       [=](const Context& c, const nlohmann::json&) {
                                         c.on<Ping>(count);
                                         c.plugin(middle, {});
                                       }),
                                {});
  tree.root.on<Ping>(count);
  tree.settle(outer);
  REQUIRE(outer->children().size() == 1);
  auto child = outer->children()[0];
  tree.settle(child);
  REQUIRE(child->children().size() == 1);
  auto grandchild = child->children()[0];
  tree.settle(grandchild);

  tree.root.emit(Ping{});
  CHECK(calls == 4);
  tree.dispose(outer);
  calls = 0;
  tree.root.emit(Ping{});
  CHECK(calls == 1);
  CHECK(child->state() == FiberState::disposed);
  CHECK(grandchild->state() == FiberState::disposed);
  CHECK(tree.root.fiber()->children().empty());
  CHECK(outer->dispose().settled());
}

TEST_CASE("fiber: a second dispose does not join the first") {
  Trace trace;
  Tree tree;
  Completion<> body(tree.loop);
  Completion<> undo(tree.loop);
  body.settle();
  auto fiber = tree.root.plugin(gated({}, &trace, body, undo), {});
  tree.settle(fiber);
  auto first = fiber->dispose();
  CHECK(fiber->dispose().settled());
  CHECK_FALSE(first.settled());
  undo.settle();
  run(tree.loop, wait_for(first));
  CHECK(fiber->state() == FiberState::disposed);
  CHECK(trace == Trace{"load begins", "load ends", "unload begins", "unload ends"});
}

TEST_CASE("fiber: an undo that throws is logged and stops nothing") {
  StandardError captured;
  Trace trace;
  Tree tree(LogLevel::error);
  auto fiber = tree.root.plugin(
      plugin("broken", {},
             [&](const Context& context, const nlohmann::json&) {
               context.effect("first", [&] { trace.push_back("first"); });
               context.effect("second", [] { throw std::runtime_error("undo error"); });
               context.effect("third", [&] { trace.push_back("third"); });
             }),
      {});
  tree.settle(fiber);
  tree.dispose(fiber);
  CHECK(trace == Trace{"third", "first"});
  CHECK(fiber->state() == FiberState::disposed);
  auto text = captured.text();
  CHECK(count_of(text, "undo error") == 1);
  CHECK_THAT(text, ContainsSubstring("second"));
}

TEST_CASE("fiber: one that waits for a service is settled and pending") {
  bool ran = false;
  Tree tree;
  auto fiber = tree.root.plugin(
      plugin("waits", {"number/1"}, [&](const Context&, const nlohmann::json&) { ran = true; }),
      {});
  CHECK_NOTHROW(tree.settle(fiber));
  CHECK(fiber->state() == FiberState::pending);
  CHECK(fiber->waiting_for() == Trace{"number/1"});
  CHECK(fiber->inject() == Trace{"number/1"});
  tree.dispose(fiber);
  CHECK(fiber->state() == FiberState::disposed);
  CHECK_FALSE(ran);
}

TEST_CASE("fiber: loads when all that it injects is there") {
  int ran = 0;
  Tree tree;
  auto fiber = tree.root.plugin(
      plugin("both", {"foo/1", "bar/1"}, [&](const Context&, const nlohmann::json&) { ++ran; }),
      {});
  tree.root.provide_as<Number>("foo/1", number(1));
  tree.settle(fiber);
  CHECK(fiber->state() == FiberState::pending);
  CHECK(fiber->waiting_for() == Trace{"bar/1"});
  tree.root.provide_as<Number>("bar/1", number(2));
  tree.settle(fiber);
  CHECK(fiber->state() == FiberState::active);
  CHECK(fiber->waiting_for().empty());
  CHECK(ran == 1);
}

TEST_CASE("fiber: unloads with a service and loads again with the next") {
  Trace trace;
  Tree tree;
  auto fiber = tree.root.plugin(
      plugin("follows", {"number/1"},
             [&](const Context& context, const nlohmann::json&) {
               trace.push_back("load " + std::to_string(context.get<Number>()->value));
               context.effect("undo", [&trace] { trace.push_back("unload"); });
             }),
      {});
  auto first = tree.root.provide<Number>(number(1));
  tree.settle(fiber);
  tree.undo(first);
  tree.settle(fiber);
  CHECK(fiber->state() == FiberState::pending);
  CHECK(trace == Trace{"load 1", "unload"});
  tree.root.provide<Number>(number(2));
  tree.settle(fiber);
  CHECK(fiber->state() == FiberState::active);
  CHECK(trace == Trace{"load 1", "unload", "load 2"});
}

TEST_CASE("fiber: a provider replaced within one turn reloads its user once") {
  Trace trace;
  Tree tree;
  auto fiber = tree.root.plugin(
      plugin("follows", {"number/1"},
             [&](const Context& context, const nlohmann::json&) {
               trace.push_back("load " + std::to_string(context.get<Number>()->value));
             }),
      {});
  auto swap = [](Context root, Disposer old) -> Task<> {
    auto undo = old.dispose();
    co_await undo;
    root.provide<Number>(number(2));
  };
  auto first = tree.root.provide<Number>(number(1));
  tree.settle(fiber);
  run(tree.loop, swap(tree.root, first));
  tree.settle(fiber);
  CHECK(trace == Trace{"load 1", "load 2"});
}

TEST_CASE("fiber: neither a load nor an unload is interrupted") {
  Trace trace;
  Tree tree;
  Completion<> body(tree.loop);
  Completion<> undo(tree.loop);
  auto foo = tree.root.provide_as<Number>("foo/1", number(1));
  auto fiber = tree.root.plugin(gated({"foo/1"}, &trace, body, undo), {});
  run_until(tree.loop, [&] { return fiber->state() == FiberState::loading; });
  tree.undo(foo);
  run_for(tree.loop, std::chrono::milliseconds(5));
  CHECK(fiber->state() == FiberState::loading);
  CHECK(trace == Trace{"load begins"});

  body.settle();
  run_until(tree.loop, [&] { return fiber->state() == FiberState::unloading; });
  tree.root.provide_as<Number>("foo/1", number(2));
  run_for(tree.loop, std::chrono::milliseconds(5));
  CHECK(fiber->state() == FiberState::unloading);

  undo.settle();
  tree.settle(fiber);
  CHECK(fiber->state() == FiberState::active);
  CHECK(trace == Trace{"load begins", "load ends", "unload begins", "unload ends", "load begins",
                       "load ends"});
}

TEST_CASE("fiber: disposal waits for the body and then undoes it") {
  Trace trace;
  Tree tree;
  Completion<> body(tree.loop);
  Completion<> undo(tree.loop);
  undo.settle();
  auto fiber = tree.root.plugin(gated({}, &trace, body, undo), {});
  run_until(tree.loop, [&] { return fiber->state() == FiberState::loading; });
  auto disposed = fiber->dispose();
  run_for(tree.loop, std::chrono::milliseconds(5));
  CHECK(fiber->state() == FiberState::loading);
  CHECK_FALSE(disposed.settled());
  body.settle();
  run(tree.loop, wait_for(disposed));
  CHECK(fiber->state() == FiberState::disposed);
  CHECK(trace == Trace{"load begins", "load ends", "unload begins", "unload ends"});
}

TEST_CASE("fiber: disposed before its first turn never runs its body") {
  bool ran = false;
  Tree tree;
  auto fiber = tree.root.plugin(
      plugin("brief", {}, [&](const Context&, const nlohmann::json&) { ran = true; }), {});
  tree.dispose(fiber);
  CHECK(fiber->state() == FiberState::disposed);
  CHECK_FALSE(ran);
}

TEST_CASE("fiber: a body may dispose its own fiber") {
  Trace trace;
  Tree tree;
  auto fiber = tree.root.plugin(plugin("selfish", {},
                                       [&](const Context& c, const nlohmann::json&) {
                                         c.effect("x", [&trace] { trace.push_back("undone"); });
                                         c.fiber()->dispose();
                                       }),
                                {});
  run_until(tree.loop, [&] { return fiber->state() == FiberState::disposed; });
  CHECK(trace == Trace{"undone"});
}

TEST_CASE("fiber: disposing the root undoes all and leaves it usable") {
  int undone = 0;
  Tree tree;
  auto body = [&](const Context& c, const nlohmann::json&) {
    c.effect("x", [&undone] { ++undone; });
  };
  auto fiber = tree.root.plugin(plugin("child", {}, body), {});
  tree.settle(fiber);
  tree.dispose(tree.root.fiber());
  tree.dispose(tree.root.fiber());
  CHECK(undone == 1);
  CHECK(fiber->state() == FiberState::disposed);
  CHECK(tree.root.fiber()->state() == FiberState::active);
  CHECK(tree.root.fiber()->effects().empty());
  auto again = tree.root.plugin(plugin("child", {}, body), {});
  tree.settle(again);
  CHECK(again->state() == FiberState::active);
}

TEST_CASE("fiber: is named by the caller or the plugin or the nearest named parent") {
  std::string nested;
  Tree tree;
  auto noop = [](const Context&, const nlohmann::json&) {};
  CHECK(tree.root.plugin(plugin("bar", {}, noop), {})->name() == "bar");
  CHECK(tree.root.plugin(plugin("bar", {}, noop), {}, "mine")->name() == "mine");
  CHECK(tree.root.plugin(plugin("", {}, noop), {})->name() == "root");
  auto outer = tree.root.plugin(plugin("outer", {},
                                       [&](const Context& c, const nlohmann::json&) {
                                         nested = c.plugin(plugin("", {}, noop), {})->name();
                                       }),
                                {});
  tree.settle(outer);
  CHECK(nested == "outer");
}

TEST_CASE("fiber: one definition can be mounted twice") {
  int ran = 0;
  Tree tree;
  auto definition = plugin("two", {}, [&](const Context&, const nlohmann::json&) { ++ran; });
  auto first = tree.root.plugin(definition, {});
  auto second = tree.root.plugin(definition, {});
  tree.settle(first);
  tree.settle(second);
  CHECK(ran == 2);
  CHECK(tree.root.fiber()->children().size() == 2);
  tree.dispose(first);
  CHECK(second->state() == FiberState::active);
  CHECK(tree.root.fiber()->children().size() == 1);
}

TEST_CASE("fiber: a chain of needs loads in the order of needs") {
  Trace trace;
  Tree tree;
  auto link = [&](std::string name, std::vector<std::string> inject, std::string provides) {
    return tree.root.plugin(
        plugin(name, inject,
               [&trace, name, provides](const Context& c, const nlohmann::json&) {
                 trace.push_back(name);
                 c.provide_as<Number>(provides, number(1));
               }),
        {});
  };
  auto third = link("third", {"b/1"}, "c/1");
  auto second = link("second", {"a/1"}, "b/1");
  auto first = link("first", {}, "a/1");
  run_until(tree.loop, [&] { return third->state() == FiberState::active; });
  CHECK(trace == Trace{"first", "second", "third"});
  CHECK(first->provides() == Trace{"a/1"});
  tree.dispose(first);
  run_until(tree.loop, [&] { return third->state() == FiberState::pending; });
  CHECK(second->state() == FiberState::pending);
  CHECK(second->provides().empty());
}

}  // namespace
}  // namespace stockade::test
