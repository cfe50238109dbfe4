// SPDX-License-Identifier: MIT
#include "framework/context.hpp"
#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

struct Foo {
  static constexpr std::string_view service = "foo/1";
  int value = 0;
};

std::shared_ptr<Foo> foo(int value) {
  return std::make_shared<Foo>(Foo{value});
}

auto provider(std::string name, int value) {
  return plugin(std::move(name), {},
                [value](const Context& c, const nlohmann::json&) { c.provide<Foo>(foo(value)); });
}

TEST_CASE("service: the root finds what it provides") {
  Tree tree;
  CHECK(tree.root.find<Foo>() == nullptr);
  auto given = foo(5);
  auto disposer = tree.root.provide<Foo>(given);
  CHECK(tree.root.get<Foo>() == given);
  CHECK(tree.root.find<Foo>()->value == 5);
  tree.undo(disposer);
  CHECK(tree.root.find<Foo>() == nullptr);
}

TEST_CASE("service: a second provider is refused and the first is named") {
  Tree tree;
  tree.root.provide<Foo>(foo(1));
  auto failure = failure_of([&] { tree.root.provide<Foo>(foo(2)); });
  CHECK(failure.code == "SERVICE_TAKEN");
  CHECK(failure.operand == "foo/1");
  CHECK(failure.text == "service \"foo/1\" has been registered at <root>");
  CHECK(tree.root.get<Foo>()->value == 1);

  auto second = tree.root.plugin(provider("second", 2), {});
  CHECK(failure_of([&] { tree.settle(second); }).code == "SERVICE_TAKEN");
  CHECK(second->state() == FiberState::failed);
}

TEST_CASE("service: a refused provider does not withdraw the first") {
  Tree tree;
  auto first = tree.root.plugin(provider("first", 1), {});
  tree.settle(first);
  auto second = tree.root.plugin(provider("second", 2), {});
  auto failure = failure_of([&] { tree.settle(second); });
  CHECK_THAT(failure.text, ContainsSubstring("<first>"));
  tree.dispose(second);
  REQUIRE(tree.root.find<Foo>() != nullptr);
  CHECK(tree.root.find<Foo>()->value == 1);
}

TEST_CASE("service: get without a declaration is refused and find is not") {
  Failure failure;
  int found = 0;
  Tree tree;
  tree.root.provide<Foo>(foo(1));
  auto fiber = tree.root.plugin(plugin("p", {},
                                       [&](const Context& c, const nlohmann::json&) {
                                         failure = failure_of([&] { c.get<Foo>(); });
                                         found = c.find<Foo>()->value;
                                       }),
                                {});
  tree.settle(fiber);
  CHECK(failure.code == "SERVICE_NOT_DECLARED");
  CHECK(failure.operand == "foo/1");
  CHECK(failure.text == "cannot get property \"foo/1\" without inject");
  CHECK(found == 1);
}

TEST_CASE("service: a declaration holds for what is nested in it") {
  int seen = 0;
  Tree tree;
  tree.root.provide<Foo>(foo(3));
  auto child = plugin("child", {},
                      [&](const Context& c, const nlohmann::json&) { seen = c.get<Foo>()->value; });
  auto fiber = tree.root.plugin(
      plugin("parent", {"foo/1"},
             [&](const Context& c, const nlohmann::json&) { c.plugin(child, {}); }),
      {});
  tree.settle(fiber);
  tree.settle(fiber->children().at(0));
  CHECK(seen == 3);
}

TEST_CASE("service: a disposed or waiting user is told that it is inactive") {
  Tree tree;
  auto noop = [](const Context&, const nlohmann::json&) {};
  auto fiber = tree.root.plugin(plugin("user", {"foo/1"}, noop), {});
  tree.settle(fiber);
  Context context(fiber, fiber->scope());
  auto pending = failure_of([&] { context.get<Foo>(); });
  CHECK(pending.code == "SERVICE_INACTIVE");
  CHECK(pending.text == "cannot get required service \"foo/1\" in inactive context");

  tree.root.provide<Foo>(foo(1));
  tree.settle(fiber);
  CHECK(context.get<Foo>()->value == 1);
  tree.dispose(fiber);
  auto disposed = failure_of([&] { context.get<Foo>(); });
  CHECK(disposed.code == "SERVICE_INACTIVE");
  CHECK(disposed.text == pending.text);
}

TEST_CASE("service: the root is told that no plugin provides it") {
  Tree tree;
  auto failure = failure_of([&] { tree.root.get<Foo>(); });
  CHECK(failure.code == "SERVICE_INACTIVE");
  CHECK_THAT(failure.text, ContainsSubstring("foo/1") && ContainsSubstring("no active plugin"));
}

Task<> provide_then_wait(Context context, Completion<> gate, int* own) {
  context.provide<Foo>(foo(7));
  *own = context.get<Foo>()->value;
  co_await gate;
}

TEST_CASE("service: users wait until the provider is active") {
  int own = 0;
  int seen = 0;
  Tree tree;
  Completion<> gate(tree.loop);
  PluginDefinition slow;
  slow.name = "slow";
  slow.apply = [&](Context c, const nlohmann::json&) {
    return provide_then_wait(std::move(c), gate, &own);
  };
  auto user = tree.root.plugin(
      plugin("user", {"foo/1"},
             [&](const Context& c, const nlohmann::json&) { seen = c.get<Foo>()->value; }),
      {});
  auto provides = tree.root.plugin(slow, {});
  run_until(tree.loop, [&] { return own != 0; });
  run_for(tree.loop, std::chrono::milliseconds(5));
  CHECK(own == 7);
  CHECK(user->state() == FiberState::pending);
  CHECK(tree.root.find<Foo>() == nullptr);
  CHECK_THAT(failure_of([&] { tree.root.get<Foo>(); }).text, ContainsSubstring("<slow>"));
  gate.settle();
  run_until(tree.loop, [&] { return user->state() == FiberState::active; });
  CHECK(seen == 7);
  CHECK(provides->provides() == Trace{"foo/1"});
}

TEST_CASE("service: a failed provider leaves nothing behind") {
  Tree tree;
  auto bad = tree.root.plugin(plugin("bad", {},
                                     [](const Context& c, const nlohmann::json&) {
                                       c.provide<Foo>(foo(1));
                                       throw std::runtime_error("no");
                                     }),
                              {});
  CHECK_THROWS(tree.settle(bad));
  CHECK(tree.root.find<Foo>() == nullptr);
  CHECK_NOTHROW(tree.root.provide<Foo>(foo(2)));
}

TEST_CASE("service: isolated scopes have providers of their own") {
  int bodies = 0;
  int undos = 0;
  std::vector<int> seen;
  Tree tree;
  Context first = tree.root.isolate("foo/1");
  Context second = tree.root.isolate("foo/1");
  auto user = plugin("user", {"foo/1"}, [&](const Context& c, const nlohmann::json&) {
    ++bodies;
    seen.push_back(c.get<Foo>()->value);
    c.effect("x", [&] { ++undos; });
  });
  auto in_root = tree.root.plugin(user, {});
  auto in_first = first.plugin(user, {});
  auto in_second = second.plugin(user, {});
  auto settle = [&] {
    for (const auto& fiber : {in_root, in_first, in_second}) tree.settle(fiber);
  };
  auto root_provider = tree.root.provide<Foo>(foo(100));
  settle();
  CHECK(bodies == 1);
  first.provide<Foo>(foo(200));
  settle();
  CHECK(bodies == 2);
  CHECK(undos == 0);
  tree.undo(root_provider);
  settle();
  CHECK(bodies == 2);
  CHECK(undos == 1);
  second.provide<Foo>(foo(300));
  settle();
  CHECK(bodies == 3);
  CHECK(undos == 1);
  CHECK(seen == std::vector<int>{100, 200, 300});
  CHECK(tree.root.find<Foo>() == nullptr);
  CHECK(first.find<Foo>()->value == 200);
  CHECK(second.find<Foo>()->value == 300);
}

TEST_CASE("service: isolation of one key leaves the others shared") {
  Tree tree;
  Context isolated = tree.root.isolate("other/1");
  tree.root.provide<Foo>(foo(1));
  tree.root.provide_as<Foo>("other/1", foo(2));
  CHECK(isolated.find<Foo>()->value == 1);
  CHECK(isolated.find_as<Foo>("other/1") == nullptr);
  CHECK(tree.root.find_as<Foo>("other/1")->value == 2);
}

TEST_CASE("service: a family shares one interface under many keys") {
  Tree tree;
  tree.root.provide_as<Foo>("tool:a/1", foo(1));
  tree.root.provide_as<Foo>("tool:b/1", foo(2));
  CHECK(tree.root.find_as<Foo>("tool:a/1")->value == 1);
  CHECK(tree.root.find_as<Foo>("tool:b/1")->value == 2);
  CHECK(tree.root.find_as<Foo>("tool:c/1") == nullptr);
}

TEST_CASE("service: one that is held outlives its provider") {
  Tree tree;
  auto fiber = tree.root.plugin(provider("p", 9), {});
  tree.settle(fiber);
  auto held = tree.root.find<Foo>();
  tree.dispose(fiber);
  CHECK(tree.root.find<Foo>() == nullptr);
  CHECK(held->value == 9);
  CHECK(held.use_count() == 1);
}

TEST_CASE("service: it is let go when its provider is disposed") {
  Tree tree;
  std::weak_ptr<Foo> watched;
  auto fiber = tree.root.plugin(plugin("p", {},
                                       [&](const Context& c, const nlohmann::json&) {
                                         auto given = foo(1);
                                         watched = given;
                                         c.provide<Foo>(given);
                                       }),
                                {});
  tree.settle(fiber);
  CHECK_FALSE(watched.expired());
  tree.dispose(fiber);
  CHECK(watched.expired());
}

TEST_CASE("service: its holder keeps the code of its provider") {
  Tree tree;
  auto code = std::make_shared<int>(1);
  std::weak_ptr<int> watched = code;
  auto definition = provider("p", 4);
  definition.code = std::move(code);
  auto fiber = tree.root.plugin(std::move(definition), {});
  tree.settle(fiber);
  auto held = tree.root.find<Foo>();
  tree.dispose(fiber);
  fiber.reset();
  CHECK_FALSE(watched.expired());
  held.reset();
  CHECK(watched.expired());
}

}  // namespace
}  // namespace stockade::test
