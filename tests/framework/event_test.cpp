// SPDX-License-Identifier: MIT
#include "framework/context.hpp"
#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

struct Said {
  static constexpr std::string_view event = "said/1";
  std::string text;
};

struct Other {
  static constexpr std::string_view event = "other/1";
};

TEST_CASE("event: listeners are called in order and prepended ones first") {
  Trace trace;
  Tree tree;
  tree.root.on<Said>([&](const Said&) { trace.push_back("a"); });
  tree.root.on<Said>([&](const Said&) { trace.push_back("b"); }, true);
  tree.root.on<Said>([&](const Said&) { trace.push_back("c"); }, true);
  tree.root.emit(Said{});
  CHECK(trace == Trace{"c", "b", "a"});
}

TEST_CASE("event: the payload arrives and other events do not") {
  Trace trace;
  Tree tree;
  tree.root.on<Said>([&](const Said& said) { trace.push_back(said.text); });
  tree.root.on<Other>([&](const Other&) { trace.push_back("other"); });
  tree.root.emit(Said{"hello"});
  CHECK(trace == Trace{"hello"});
}

TEST_CASE("event: a disposed listener is not called") {
  int calls = 0;
  Tree tree;
  auto listener = tree.root.on<Said>([&](const Said&) { ++calls; });
  tree.root.emit(Said{});
  tree.undo(listener);
  tree.root.emit(Said{});
  CHECK(calls == 1);
}

TEST_CASE("event: a one-shot listener that emits again is called once") {
  int calls = 0;
  Tree tree;
  auto listener = tree.root.once<Said>([&](const Said&) {
    ++calls;
    tree.root.emit(Said{});
  });
  tree.root.emit(Said{});
  tree.root.emit(Said{});
  CHECK(calls == 1);
  CHECK_NOTHROW(tree.undo(listener));
}

TEST_CASE("event: the error of a listener reaches the emitter and ends the round") {
  bool later = false;
  Tree tree;
  tree.root.on<Said>([](const Said&) { throw std::runtime_error("listener error"); });
  tree.root.on<Said>([&](const Said&) { later = true; });
  CHECK_THROWS_WITH(tree.root.emit(Said{}), "listener error");
  CHECK_FALSE(later);
}

TEST_CASE("event: a listener added during a round waits for the next") {
  Trace trace;
  Tree tree;
  tree.root.once<Said>([&](const Said&) {
    trace.push_back("first");
    tree.root.on<Said>([&](const Said&) { trace.push_back("added"); });
  });
  tree.root.emit(Said{});
  CHECK(trace == Trace{"first"});
  tree.root.emit(Said{});
  CHECK(trace == Trace{"first", "added"});
}

TEST_CASE("event: a one-shot listener used up within a round is skipped") {
  Trace trace;
  Tree tree;
  tree.root.on<Said>([&](const Said& said) {
    if (said.text == "outer") tree.root.emit(Said{"inner"});
  });
  tree.root.once<Said>([&](const Said& said) { trace.push_back(said.text); });
  tree.root.emit(Said{"outer"});
  CHECK(trace == Trace{"inner"});
}

TEST_CASE("event: all fibers of a tree hear it and other trees do not") {
  Trace trace;
  Tree tree;
  Tree stranger;
  auto fiber =
      tree.root.plugin(plugin("p", {},
                              [&](const Context& c, const nlohmann::json&) {
                                c.on<Said>([&](const Said& said) { trace.push_back(said.text); });
                              }),
                       {});
  tree.settle(fiber);
  stranger.root.emit(Said{"stranger"});
  tree.root.emit(Said{"root"});
  Context(fiber, fiber->scope()).emit(Said{"own"});
  CHECK(trace == Trace{"root", "own"});
}

TEST_CASE("event: emitting without listeners does nothing") {
  Tree tree;
  CHECK_NOTHROW(tree.root.emit(Other{}));
}

TEST_CASE("event: a listener keeps its own state") {
  std::vector<int> seen;
  Tree tree;
  tree.root.on<Said>([&seen, count = 0](const Said&) mutable { seen.push_back(++count); });
  tree.root.emit(Said{});
  tree.root.emit(Said{});
  CHECK(seen.back() == 2);
}

}  // namespace
}  // namespace stockade::test
