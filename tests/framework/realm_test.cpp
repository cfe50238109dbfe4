// SPDX-License-Identifier: MIT
// What services offer beyond provide and get: values, availability, labels, intercepts, notices.
#include "framework/context.hpp"
#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

using nlohmann::json;

struct Foo {
  static constexpr std::string_view service = "foo/1";
  int value = 0;
};

std::shared_ptr<Foo> foo(int value) {
  return std::make_shared<Foo>(Foo{value});
}

TEST_CASE("46: the provider gives another value and nobody reloads") {
  int loads = 0;
  Tree tree;
  auto provider = tree.root.plugin(
      plugin("provider", {}, [](const Context& c, const json&) { c.provide<Foo>(foo(1)); }), {});
  auto user = tree.root.plugin(
      plugin("user", {"foo/1"}, [&](const Context&, const json&) { ++loads; }), {});
  run_until(tree.loop, [&] { return user->state() == FiberState::active; });
  Context(provider, provider->scope()).set<Foo>(foo(2));
  CHECK(tree.root.find<Foo>()->value == 2);
  tree.loop.drain();
  CHECK(loads == 1);
}

TEST_CASE("46: nobody else gives it a value") {
  Tree tree;
  tree.root.provide<Foo>(foo(1));
  auto other = tree.root.plugin(plugin("other", {}, [](const Context&, const json&) {}), {});
  tree.settle(other);
  auto foreign = failure_of([&] { Context(other, other->scope()).set<Foo>(foo(2)); });
  CHECK(foreign.code == "SERVICE_FOREIGN");
  CHECK(foreign.text == "cannot set property \"foo/1\" in multiple fibers");
  CHECK(tree.root.find<Foo>()->value == 1);
}

TEST_CASE("46: nor one without a provider") {
  Tree tree;
  auto missing = failure_of([&] { tree.root.set<Foo>(foo(2)); });
  CHECK(missing.code == "SERVICE_NOT_PROVIDED");
  CHECK(missing.text == "cannot set property \"foo/1\" without provide");
}

Task<> provide_and_wait(Context context, Completion<> gate) {
  context.provide<Foo>(foo(7));
  co_await gate;
}

TEST_CASE("50: what a provider has not finished is only peeked at") {
  Tree tree;
  Completion<> gate(tree.loop);
  PluginDefinition slow;
  slow.name = "slow";
  slow.apply = [&](Context c, const json&) { return provide_and_wait(std::move(c), gate); };
  auto provider = tree.root.plugin(slow, {});
  run_until(tree.loop, [&] { return tree.root.peek<Foo>() != nullptr; });
  CHECK(tree.root.find<Foo>() == nullptr);
  CHECK(tree.root.peek<Foo>()->value == 7);
  CHECK(Context(provider, provider->scope()).get<Foo>()->value == 7);
  gate.settle();
  tree.settle(provider);
  CHECK(tree.root.find<Foo>()->value == 7);
}

TEST_CASE("52: a service is there when its predicate says so") {
  int loads = 0;
  int undos = 0;
  bool there = false;
  Tree tree;
  tree.root.provide<Foo>(foo(1), [&] { return there; });
  auto user = tree.root.plugin(plugin("user", {"foo/1"},
                                      [&](const Context& c, const json&) {
                                        ++loads;
                                        c.effect("x", [&] { ++undos; });
                                      }),
                               {});
  tree.settle(user);
  CHECK(user->state() == FiberState::pending);
  CHECK(tree.root.find<Foo>() == nullptr);  // its provider is told the same
  there = true;
  tree.root.notify("foo/1");
  tree.settle(user);
  CHECK(user->state() == FiberState::active);
  CHECK(tree.root.find<Foo>() != nullptr);
  there = false;
  tree.root.notify("foo/1");
  tree.settle(user);
  CHECK(user->state() == FiberState::pending);
  CHECK(loads == 1);
  CHECK(undos == 1);
}

TEST_CASE("52: a predicate that throws says no and is logged for its provider") {
  StandardError captured;
  Tree tree(LogLevel::error);
  auto provider = tree.root.plugin(
      plugin("provider", {},
             [](const Context& c, const json&) {
               c.provide<Foo>(foo(1), []() -> bool { throw std::runtime_error("cannot tell"); });
             }),
      {});
  tree.settle(provider);
  CHECK(tree.root.find<Foo>() == nullptr);
  CHECK_THAT(captured.text(), ContainsSubstring("provider: ") && ContainsSubstring("cannot tell"));
}

TEST_CASE("54: scopes with one label share a provider") {
  int loads = 0;
  int undos = 0;
  Tree tree;
  Context first = tree.root.isolate("foo/1", "shared");
  Context second = tree.root.isolate("foo/1", "shared");
  auto user = plugin("user", {"foo/1"}, [&](const Context& c, const json&) {
    ++loads;
    c.effect("x", [&] { ++undos; });
  });
  auto in_root = tree.root.plugin(user, {});
  first.plugin(user, {});
  second.plugin(user, {});
  tree.root.provide<Foo>(foo(1));
  tree.loop.drain();
  CHECK(loads == 1);
  auto shared = first.provide<Foo>(foo(2));
  tree.loop.drain();
  CHECK(loads == 3);
  CHECK(second.find<Foo>()->value == 2);
  tree.undo(shared);
  tree.loop.drain();
  CHECK(loads == 3);
  CHECK(undos == 2);
  CHECK(in_root->state() == FiberState::active);
}

struct Born {
  static constexpr std::string_view event = "born/1";
};

TEST_CASE("55: an event for those who share a service is heard in its scope alone") {
  Trace heard;
  Tree tree;
  Context apart = tree.root.isolate("foo/1");
  tree.root.on<Born>([&](const Born&) { heard.push_back("root"); });
  apart.on<Born>([&](const Born&) { heard.push_back("apart"); });
  auto fiber = apart.plugin(plugin("p", {},
                                   [](const Context& c, const json&) {
                                     c.provide<Foo>(foo(1));
                                     c.emit(Born{}, c.sharing("foo/1"));
                                   }),
                            {});
  tree.settle(fiber);
  CHECK(heard == Trace{"apart"});
}

TEST_CASE("56: what is asked of a service is merged from the outside in") {
  Tree tree;
  Context context =
      tree.root.intercept("foo/1", {{"a", 1}, {"b", 1}}).intercept("foo/1", {{"b", 2}, {"c", 2}});
  CHECK(context.service_config("foo/1", {{"a", 0}, {"z", 0}}, {{"c", 9}}) ==
        json{{"a", 1}, {"z", 0}, {"b", 2}, {"c", 9}});
  CHECK(context.service_config("other/1", {{"a", 0}}, nullptr) == json{{"a", 0}});
  CHECK(tree.root.service_config("foo/1", {{"a", 0}}, nullptr) == json{{"a", 0}});
}

TEST_CASE("56: a plugin's own wish is the innermost") {
  json seen;
  Tree tree;
  auto definition = plugin("p", {}, [&](const Context& c, const json&) {
    seen = c.service_config("foo/1", {{"z", 0}}, {{"c", 9}});
  });
  definition.inject_config["foo/1"] = std::make_shared<const json>(json{{"b", 4}, {"d", 4}});
  auto fiber = tree.root.intercept("foo/1", {{"a", 1}, {"b", 1}}).plugin(definition, {});
  tree.settle(fiber);
  CHECK(seen == json{{"z", 0}, {"a", 1}, {"b", 4}, {"d", 4}, {"c", 9}});
}

TEST_CASE("57: a service that comes and goes is told") {
  Trace told;
  Tree tree;
  auto observer = tree.root.on<ServiceChanged>([&](const ServiceChanged& changed) {
    const auto* value = static_cast<const Foo*>(changed.value.get());
    told.push_back(std::string(changed.key) + "=" +
                   (value ? std::to_string(value->value) : "none"));
  });
  auto provided = tree.root.provide<Foo>(foo(1));
  tree.root.set<Foo>(foo(2));
  tree.undo(provided);
  CHECK(told == Trace{"foo/1=1", "foo/1=2", "foo/1=none"});
  told.clear();
  auto fiber = tree.root.plugin(
      plugin("p", {}, [](const Context& c, const json&) { c.provide<Foo>(foo(3)); }), {});
  tree.settle(fiber);
  tree.dispose(fiber);
  CHECK(told == Trace{"foo/1=3", "foo/1=none"});
}

}  // namespace
}  // namespace stockade::test
