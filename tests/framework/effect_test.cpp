// SPDX-License-Identifier: MIT
#include "framework/context.hpp"
#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

struct Ping {
  static constexpr std::string_view event = "ping/1";
};

struct Thing {
  static constexpr std::string_view service = "thing/1";
};

Task<> slow_undo(Loop* loop, Trace* trace, std::string label) {
  trace->push_back(label + " begins");
  auto pause = sleep(*loop, std::chrono::milliseconds(5));
  co_await pause;
  trace->push_back(label + " ends");
}

Task<> throwing_undo() {
  throw std::runtime_error("undo error");
  co_return;
}

TEST_CASE("effect: labels are listed in order of registration") {
  Tree tree;
  tree.root.effect("mine", [] {});
  tree.root.on<Ping>([](const Ping&) {});
  tree.root.provide<Thing>(std::make_shared<Thing>());
  tree.root.plugin(plugin("child", {}, [](const Context&, const nlohmann::json&) {}), {});
  CHECK(tree.root.fiber()->effects() ==
        Trace{"mine", "ctx.on(\"ping/1\")", "ctx.provide(\"thing/1\")", "ctx.plugin()"});
}

TEST_CASE("effect: undone once however often its disposer is called") {
  int undone = 0;
  Tree tree;
  auto disposer = tree.root.effect("x", [&] { ++undone; });
  auto copy = disposer;
  CHECK(undone == 0);
  tree.undo(disposer);
  tree.undo(disposer);
  tree.undo(copy);
  CHECK(undone == 1);
  CHECK(tree.root.fiber()->effects().empty());
}

TEST_CASE("effect: the undo of one leaves the others") {
  Trace trace;
  Tree tree;
  tree.root.effect("a", [&] { trace.push_back("a"); });
  auto middle = tree.root.effect("b", [&] { trace.push_back("b"); });
  tree.root.effect("c", [&] { trace.push_back("c"); });
  tree.undo(middle);
  CHECK(tree.root.fiber()->effects() == Trace{"a", "c"});
  tree.dispose(tree.root.fiber());
  CHECK(trace == Trace{"b", "c", "a"});
}

TEST_CASE("effect: undos run in strict reverse and each is awaited") {
  Trace trace;
  Tree tree;
  tree.root.effect("1", [&] { trace.push_back("1"); });
  tree.root.effect("2", Undo([&] { return slow_undo(&tree.loop, &trace, "2"); }));
  tree.root.effect("3", [&] { trace.push_back("3"); });
  tree.dispose(tree.root.fiber());
  CHECK(trace == Trace{"3", "2 begins", "2 ends", "1"});
}

TEST_CASE("effect: a child plugin is undone in its place") {
  Trace trace;
  Tree tree;
  auto outer = tree.root.plugin(
      plugin("outer", {},
             [&](const Context& context, const nlohmann::json&) {
               context.effect("before", [&] { trace.push_back("before"); });
               context.plugin(plugin("child", {},
                                     [&](const Context& c, const nlohmann::json&) {
                                       c.effect("x", Undo([&] {
                                                  return slow_undo(&tree.loop, &trace, "child");
                                                }));
                                     }),
                              {});
               context.effect("after", [&] { trace.push_back("after"); });
             }),
      {});
  tree.settle(outer);
  tree.settle(outer->children().at(0));
  tree.dispose(outer);
  CHECK(trace == Trace{"after", "child begins", "child ends", "before"});
}

TEST_CASE("effect: the error of an undo reaches who called the disposer") {
  Tree tree;
  auto direct = tree.root.effect("x", [] { throw std::runtime_error("undo error"); });
  CHECK_THROWS_WITH(tree.undo(direct), "undo error");
  auto later = tree.root.effect("y", Undo(throwing_undo));
  CHECK_THROWS_WITH(tree.undo(later), "undo error");
  CHECK(tree.root.fiber()->effects().empty());
}

TEST_CASE("effect: what a body registered before it threw is undone in reverse") {
  Trace trace;
  Tree tree;
  auto fiber = tree.root.plugin(plugin("half", {},
                                       [&](const Context& context, const nlohmann::json&) {
                                         context.effect("1", [&] { trace.push_back("1"); });
                                         context.effect("2", [&] { trace.push_back("2"); });
                                         throw std::runtime_error("test");
                                       }),
                                {});
  CHECK_THROWS_WITH(tree.settle(fiber), "test");
  CHECK(trace == Trace{"2", "1"});
  CHECK(fiber->effects().empty());
}

TEST_CASE("effect: one registered after the body belongs to the fiber too") {
  bool undone = false;
  Tree tree;
  auto fiber = tree.root.plugin(plugin("p", {}, [](const Context&, const nlohmann::json&) {}), {});
  tree.settle(fiber);
  Context(fiber, fiber->scope()).effect("late", [&] { undone = true; });
  CHECK(fiber->effects() == Trace{"late"});
  tree.dispose(fiber);
  CHECK(undone);
}

TEST_CASE("effect: a disposer outlives its fiber and then does nothing") {
  int undone = 0;
  Tree tree;
  std::optional<Disposer> kept;
  auto fiber = tree.root.plugin(plugin("p", {},
                                       [&](const Context& c, const nlohmann::json&) {
                                         kept.emplace(c.effect("x", [&] { ++undone; }));
                                       }),
                                {});
  tree.settle(fiber);
  tree.dispose(fiber);
  tree.undo(*kept);
  CHECK(undone == 1);
}

TEST_CASE("effect: a registration that fails while undoing does not stop the reload") {
  Trace codes;
  Tree tree;
  auto first = tree.root.provide<Thing>(std::make_shared<Thing>());
  auto fiber = tree.root.plugin(
      plugin("p", {"thing/1"},
             [&](const Context& context, const nlohmann::json&) {
               codes.push_back("load");
               if (codes.size() == 1)
                 context.effect("x", [&codes, context] {
                   codes.push_back(failure_of([&] { context.effect("y", [] {}); }).code);
                 });
             }),
      {});
  tree.settle(fiber);
  tree.undo(first);
  tree.root.provide<Thing>(std::make_shared<Thing>());
  tree.settle(fiber);
  CHECK(fiber->state() == FiberState::active);
  CHECK(fiber->effects().empty());
  CHECK(codes == Trace{"load", "INACTIVE_EFFECT", "load"});
}

}  // namespace
}  // namespace stockade::test
