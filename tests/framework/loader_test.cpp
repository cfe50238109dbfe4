// SPDX-License-Identifier: MIT
#include "framework/loader.hpp"

#include "tests/framework/harness.hpp"
#include "tests/framework/objects.hpp"
#include "tests/framework/objects/greeter.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

using nlohmann::json;

LoaderEntry entry(std::string plugin, json config = json::object(), std::string id = {}) {
  LoaderEntry out;
  out.id = std::move(id);
  out.plugin = std::move(plugin);
  out.config = std::move(config);
  return out;
}

struct Fixture : Tree {
  void apply(std::vector<LoaderEntry> entries) {
    run(loop, loader.apply(LoaderConfig{std::move(entries)}, "stockade.json"));
  }
  Failure apply_failure(std::vector<LoaderEntry> entries) {
    return failure_of([&] { apply(std::move(entries)); });
  }
  // Nothing mounted and, after the loop turned, nothing mapped.
  void check_nothing_stays() {
    CHECK(root.fiber()->children().empty());
    CHECK(root.fiber()->effects().empty());
    CHECK(loader.fibers().empty());
    CHECK(root.find<Greeter>() == nullptr);
    loop.drain();
    for (const char* name : {"test-minimal", "test-greeter", "test-greeting-user", "test-thrower",
                             "test-late-thrower", "test-configured", "test-first-relay"}) {
      INFO(name);
      CHECK_FALSE(mapped(name));
    }
  }

  Loader loader{root, TEST_OBJECTS};
};

TEST_CASE("loader: an empty config mounts nothing") {
  Fixture fixture;
  fixture.apply({});
  CHECK(fixture.loader.fibers().empty());
  CHECK(fixture.root.fiber()->children().empty());
}

TEST_CASE("loader: mounts entries by name and by path under their ids") {
  Fixture fixture;
  fixture.apply(
      {entry("test-minimal"), entry(object_file("test-greeter"), json::object(), "polite")});
  REQUIRE(fixture.loader.fibers().size() == 2);
  CHECK(fixture.loader.fibers()[0]->name() == "test-minimal");
  CHECK(fixture.loader.fibers()[1]->name() == "polite");
  for (const auto& fiber : fixture.loader.fibers()) CHECK(fiber->state() == FiberState::active);
}

TEST_CASE("loader: gives each entry its config") {
  Fixture fixture;
  fixture.apply({entry("test-greeter", {{"greeting", "hi"}}),
                 entry("test-configured", {{"retryCount", 4}}, "mine")});
  CHECK(fixture.root.find<Greeter>()->greet("you") == "hi you");
  CHECK(fixture.loader.fibers()[1]->effects() == Trace{"retries 4"});
}

TEST_CASE("loader: an entry without a config has the defaults") {
  Fixture fixture;
  fixture.apply({entry("test-greeter", nullptr)});
  CHECK(fixture.root.find<Greeter>()->greet("you") == "hello you");
}

TEST_CASE("loader: one plugin can be mounted under two ids") {
  Fixture fixture;
  fixture.apply(
      {entry("test-minimal", json::object(), "a"), entry("test-minimal", json::object(), "b")});
  CHECK(fixture.loader.fibers().size() == 2);
}

TEST_CASE("loader: the order of entries does not matter to services") {
  Fixture fixture;
  fixture.apply({entry("test-greeting-user"), entry("test-greeter")});
  CHECK(fixture.loader.fibers()[0]->state() == FiberState::active);
  REQUIRE(fixture.root.find_as<Greeter>(kSecondGreeter) != nullptr);
  CHECK(fixture.root.find_as<Greeter>(kSecondGreeter)->greet("you") == "hello you!");
}

TEST_CASE("loader: waiting for a service is no failure") {
  Fixture fixture;
  fixture.apply({entry("test-greeting-user")});
  REQUIRE(fixture.loader.fibers().size() == 1);
  CHECK(fixture.loader.fibers()[0]->state() == FiberState::pending);
  CHECK(fixture.loader.fibers()[0]->waiting_for() == Trace{"test-greeter/1"});
}

TEST_CASE("loader: a disabled entry is neither opened nor mounted") {
  Fixture fixture;
  auto missing = entry("no-such-plugin");
  missing.disabled = true;
  auto greeter = entry("test-greeter");
  greeter.disabled = true;
  fixture.apply({missing, greeter, entry("test-minimal")});
  CHECK(fixture.loader.fibers().size() == 1);
  CHECK_FALSE(mapped("test-greeter"));
}

TEST_CASE("loader: a misspelt plugin is named with its file and the nearest right name") {
  Fixture fixture;
  auto failure =
      fixture.apply_failure({entry("test-minimal"), entry("test-gretter", {}, "polite")});
  CHECK(failure.code == "PLUGIN_UNUSABLE");
  CHECK(failure.operand == "polite");
  CHECK_THAT(failure.text,
             ContainsSubstring("failed to import loader entry polite (test-gretter): "));
  CHECK_THAT(failure.text, ContainsSubstring(object_file("test-gretter")));
  CHECK_THAT(failure.text, ContainsSubstring("did you mean \"test-greeter\"?"));
  fixture.check_nothing_stays();
}

TEST_CASE("loader: a plugin without a near name lists those that are there") {
  Fixture fixture;
  auto failure = fixture.apply_failure({entry("qqqqqqqqqqqqqqqqqqqq")});
  CHECK_THAT(failure.text, ContainsSubstring("test-minimal") && ContainsSubstring("test-greeter"));
}

TEST_CASE("loader: a missing file by path is named without a guess") {
  Fixture fixture;
  auto failure = fixture.apply_failure({entry("/no/such/file.so")});
  CHECK(failure.code == "PLUGIN_UNUSABLE");
  CHECK_THAT(failure.text, ContainsSubstring("/no/such/file.so") && ContainsSubstring("ENOENT"));
  CHECK(failure.text.find("did you mean") == std::string::npos);
}

TEST_CASE("loader: a library of another ABI ends the import") {
  Fixture fixture;
  auto failure = fixture.apply_failure({entry("test-greeter"), entry("test-other-abi")});
  CHECK(failure.code == "PLUGIN_UNUSABLE");
  CHECK_THAT(failure.text, ContainsSubstring(object_file("test-other-abi")) &&
                               ContainsSubstring("failed to import"));
  CHECK(failure.text.find("did you mean") == std::string::npos);
  fixture.check_nothing_stays();
}

TEST_CASE("loader: an invalid config is named by entry and key and nearest right key") {
  Fixture fixture;
  auto failure = fixture.apply_failure(
      {entry("test-greeter"), entry("test-configured", {{"retryCout", 1}, {"speed", "veryfast"}})});
  CHECK(failure.code == "CONFIG_INVALID");
  CHECK_THAT(failure.text, ContainsSubstring("stockade.json") &&
                               ContainsSubstring("$.plugins[1].config") &&
                               ContainsSubstring("test-configured"));
  CHECK_THAT(failure.text,
             ContainsSubstring("$.retryCout: unknown key (did you mean \"retryCount\"?)"));
  CHECK_THAT(failure.text, ContainsSubstring("did you mean \"very-fast\"?"));
  fixture.check_nothing_stays();
}

TEST_CASE("loader: the issues of all entries are reported together") {
  Fixture fixture;
  auto failure =
      fixture.apply_failure({entry("test-configured", {{"speed", 1}}, "a"),
                             entry("test-configured", {{"retryCount", 11}}, "b"), entry("")});
  CHECK(failure.code == "CONFIG_INVALID");
  CHECK_THAT(failure.text, ContainsSubstring("$.plugins[0].config"));
  CHECK_THAT(failure.text, ContainsSubstring("$.plugins[1].config"));
  CHECK_THAT(failure.text, ContainsSubstring("expected at most 10"));
  CHECK_THAT(failure.text, ContainsSubstring("$.plugins[2].plugin"));
}

TEST_CASE("loader: a duplicate id is refused before any body runs") {
  Fixture fixture;
  auto failure =
      fixture.apply_failure({entry("test-greeter", {}, "x"), entry("test-minimal", {}, "x")});
  CHECK(failure.code == "CONFIG_INVALID");
  CHECK_THAT(failure.text, ContainsSubstring("duplicate loader entry id: x") &&
                               ContainsSubstring("$.plugins[1].id"));
  fixture.check_nothing_stays();
}

TEST_CASE("loader: a body that throws takes all others down in reverse") {
  Trace trace;
  Fixture fixture;
  auto listener =
      fixture.root.on<Farewell>([&](const Farewell& event) { trace.push_back(event.from); });
  auto failure = fixture.apply_failure(
      {entry("test-greeter"), entry("test-greeting-user"), entry("test-thrower", {}, "bad")});
  CHECK(failure.code == "PLUGIN_FAILED");
  CHECK(failure.operand == "bad");
  CHECK(failure.text == "failed to apply loader entry bad (test-thrower): the body's own error");
  CHECK(trace == Trace{"user", "greeter"});
  fixture.undo(listener);
  fixture.check_nothing_stays();
}

TEST_CASE("loader: a body that fails late at the end of a chain fails the whole") {
  Fixture fixture;
  auto failure = fixture.apply_failure({entry("test-late-thrower"), entry("test-third-relay"),
                                        entry("test-second-relay"), entry("test-first-relay"),
                                        entry("test-greeter")});
  CHECK(failure.code == "TOO_LATE");
  CHECK(failure.operand == "test-late-thrower");
  CHECK_THAT(failure.text, ContainsSubstring("late failure"));
  fixture.check_nothing_stays();
}

TEST_CASE("loader: can apply again after a failure") {
  Fixture fixture;
  CHECK(fixture.apply_failure({entry("test-greeter"), entry("test-thrower")}).code ==
        "PLUGIN_FAILED");
  fixture.apply({entry("test-greeter")});
  CHECK(fixture.root.find<Greeter>()->greet("you") == "hello you");
}

TEST_CASE("loader: libraries go with the tree") {
  {
    Fixture fixture;
    fixture.apply({entry("test-greeting-user"), entry("test-greeter")});
    CHECK(mapped("test-greeter"));
    CHECK(mapped("test-greeting-user"));
  }
  CHECK_FALSE(mapped("test-greeter"));
  CHECK_FALSE(mapped("test-greeting-user"));
}

}  // namespace
}  // namespace stockade::test
