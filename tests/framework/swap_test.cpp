// SPDX-License-Identifier: MIT
#include "framework/swap.hpp"

#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

using nlohmann::json;

struct Foo {
  static constexpr std::string_view service = "foo/1";
  int value = 0;
};
struct Bar {
  static constexpr std::string_view service = "bar/1";
  std::shared_ptr<Foo> foo;
};
struct Ping {
  static constexpr std::string_view event = "ping/1";
};

Task<> slow_provider(Context context, Trace* trace, int value) {
  context.provide<Foo>(std::make_shared<Foo>(Foo{value}));
  context.on<Ping>(
      [trace, value](const Ping&) { trace->push_back("ping " + std::to_string(value)); });
  context.effect(
      "x", [trace, value] { trace->push_back("provider " + std::to_string(value) + " goes"); });
  auto pause = sleep(context.loop(), std::chrono::milliseconds(2));
  co_await pause;
  if (value < 0) throw std::runtime_error("will not load");
}

// Outlives the tree, whose end is traced, too.
struct Traced {
  Trace trace;
};

struct Fixture : Traced, Tree {
  PluginDefinition provider(int value) {
    PluginDefinition definition;
    definition.name = "provider";
    definition.apply = [this, value](Context c, const json&) {
      return slow_provider(std::move(c), &trace, value);
    };
    return definition;
  }
  std::shared_ptr<Fiber> mount_user() {
    auto fiber = root.plugin(plugin("user", {"foo/1"},
                                    [this](const Context& c, const json&) {
                                      c.provide<Bar>(std::make_shared<Bar>(Bar{c.get<Foo>()}));
                                      c.effect("x", [this] { trace.push_back("user goes"); });
                                    }),
                             {});
    run_until(loop, [&] { return fiber->state() == FiberState::active; });
    return fiber;
  }
  std::vector<Swap::Failure> load(Swap& swap, bool must_serve = true) {
    std::vector<Swap::Failure> failures;
    auto store = [](Task<std::vector<Swap::Failure>> task,
                    std::vector<Swap::Failure>* out) -> Task<> { *out = co_await task; };
    run(loop, store(swap.load(must_serve), &failures));
    return failures;
  }
  int bar() { return root.find<Bar>() ? root.find<Bar>()->foo->value : 0; }
};

TEST_CASE("swap: a provider and its users are replaced in one step") {
  Fixture f;
  auto old = f.root.plugin(f.provider(1), {});
  auto user = f.mount_user();
  auto held = f.root.find<Bar>();
  Swap swap(f.root);
  swap.place(old, old->scope(), f.provider(2), {}, "provider");
  // Whoever looks while it loads finds the old ones, and nobody else hears events.
  bool gap = false;
  Timer look(f.loop);
  std::function<void()> again = [&] {
    gap = gap || f.bar() != 1;
    look.start(std::chrono::milliseconds(1), again);
  };
  again();
  CHECK(f.load(swap).empty());
  look.stop();
  CHECK_FALSE(gap);
  f.root.emit(Ping{});
  CHECK(f.trace == Trace{"ping 1"});
  f.trace.clear();

  swap.commit();
  CHECK(f.bar() == 2);
  CHECK(f.root.find<Foo>()->value == 2);
  f.root.emit(Ping{});
  run(f.loop, swap.retire());
  CHECK(f.trace == Trace{"ping 1", "ping 2", "user goes", "provider 1 goes"});
  CHECK(old->state() == FiberState::disposed);
  CHECK(user->state() == FiberState::disposed);
  CHECK(held->foo->value == 1);
  auto successor = swap.successor_of(user);
  REQUIRE(successor != nullptr);
  CHECK(successor->state() == FiberState::active);
  CHECK(f.root.fiber()->children() ==
        std::vector<std::shared_ptr<Fiber>>{swap.successor_of(old), successor});
}

TEST_CASE("swap: a successor that fails leaves everything as it was") {
  Fixture f;
  auto old = f.root.plugin(f.provider(1), {});
  auto user = f.mount_user();
  Swap swap(f.root);
  swap.place(old, old->scope(), f.provider(-2), {}, "provider");
  auto failures = f.load(swap);
  REQUIRE(failures.size() == 1);  // not of the user's successor, which waits for it
  CHECK(describe(failures[0].error) == "will not load");
  run(f.loop, swap.abandon());
  CHECK(f.trace == Trace{"provider -2 goes"});
  CHECK(old->state() == FiberState::active);
  CHECK(user->state() == FiberState::active);
  CHECK(f.bar() == 1);
  CHECK(f.root.fiber()->children() == std::vector<std::shared_ptr<Fiber>>{old, user});
}

TEST_CASE("swap: one that is dropped disposes its successors") {
  Fixture f;
  auto old = f.root.plugin(f.provider(1), {});
  f.settle(old);
  {
    Swap swap(f.root);
    swap.place(old, old->scope(), f.provider(2), {}, "provider");
    CHECK(f.load(swap).empty());
  }
  f.loop.drain();
  CHECK(f.root.find<Foo>()->value == 1);
  CHECK(f.root.fiber()->children().size() == 1);
  CHECK(f.trace == Trace{"provider 2 goes"});
}

TEST_CASE("swap: what is removed leaves its users waiting") {
  Fixture f;
  auto old = f.root.plugin(f.provider(1), {});
  auto user = f.mount_user();
  Swap swap(f.root);
  swap.remove(old);
  CHECK(f.load(swap, false).empty());
  swap.commit();
  CHECK(f.root.find<Foo>() == nullptr);
  run(f.loop, swap.retire());
  auto successor = swap.successor_of(user);
  CHECK(successor->state() == FiberState::pending);
  CHECK(successor->waiting_for() == Trace{"foo/1"});
  f.root.provide<Foo>(std::make_shared<Foo>(Foo{5}));
  f.settle(successor);
  CHECK(f.bar() == 5);
}

TEST_CASE("swap: one that must serve and waits is a failure") {
  Fixture f;
  auto old = f.root.plugin(f.provider(1), {});
  f.settle(old);
  Swap swap(f.root);
  auto waiting = plugin("waiting", {"bar/1"}, [](const Context&, const json&) {});
  swap.place(old, old->scope(), waiting, {}, "provider");
  auto failures = f.load(swap);
  REQUIRE(failures.size() == 1);
  CHECK(describe(failures[0].error) == "it waits for \"bar/1\"");
  run(f.loop, swap.abandon());
  CHECK(f.root.find<Foo>()->value == 1);
}

TEST_CASE("swap: a user that is a child of another comes with its parent") {
  Fixture f;
  int mounted = 0;
  auto old = f.root.plugin(f.provider(1), {});
  auto child = plugin("child", {"foo/1"}, [&](const Context&, const json&) { ++mounted; });
  auto parent = f.root.plugin(
      plugin("parent", {"foo/1"}, [&](const Context& c, const json&) { c.plugin(child, {}); }), {});
  run_until(f.loop, [&] { return mounted == 1; });
  Swap swap(f.root);
  swap.place(old, old->scope(), f.provider(2), {}, "provider");
  CHECK(f.load(swap).empty());
  swap.commit();
  run(f.loop, swap.retire());
  CHECK(mounted == 2);  // the old child does not load once more before it goes with its parent
  CHECK(swap.successor_of(parent)->children().size() == 1);
}

}  // namespace
}  // namespace stockade::test
