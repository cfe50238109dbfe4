// SPDX-License-Identifier: MIT
// What a loader does with a config that changes.
#include "framework/loader.hpp"
#include "framework/watch.hpp"
#include "tests/framework/harness.hpp"
#include "tests/framework/objects.hpp"
#include "tests/framework/objects/greeter.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

using nlohmann::json;

// Outlives the tree, whose end is recorded, too.
struct Recorded {
  Trace trace;
};

struct Bed : Recorded, Tree {
  Bed() {
    status = root.on<FiberStatus>([this](const FiberStatus& told) {
      if (told.from == FiberState::loading && told.to == FiberState::active)
        trace.push_back("+" + std::string(told.fiber.name()));
      if (told.from == FiberState::active) trace.push_back("-" + std::string(told.fiber.name()));
    });
  }
  void apply(std::vector<json> plugins) {
    run(loop, loader.apply(read_config<LoaderConfig>(json{{"plugins", plugins}}, "test"), "test"));
  }
  std::string create(const json& row, std::string parent = {}) {
    std::string id;
    auto store = [](Task<std::string> task, std::string* out) -> Task<> { *out = co_await task; };
    run(loop, store(loader.create(read_config<LoaderEntry>(row, "test"), std::move(parent)), &id));
    return id;
  }
  void update(const std::string& id, const std::function<void(LoaderEntry&)>& edit) {
    run(loop, loader.update(id, edit));
  }
  void move(const std::string& id, const std::string& parent, std::size_t position = 0) {
    run(loop, loader.move(id, parent, position));
  }
  Trace happened() { return std::exchange(trace, {}); }
  std::string greeting() { return root.find<Greeter>() ? root.find<Greeter>()->greet("you") : ""; }

  Loader loader{root, TEST_OBJECTS};
  std::optional<Disposer> status;
};

json row(const std::string& id, const std::string& plugin, json config = json::object()) {
  return {{"id", id}, {"plugin", plugin}, {"config", std::move(config)}};
}
json group(const std::string& id, std::vector<json> rows, bool disabled = false) {
  return {{"id", id}, {"group", std::move(rows)}, {"disabled", disabled}};
}
json with(json row, const char* key, json value) {
  row[key] = std::move(value);
  return row;
}

TEST_CASE("59: rows of groups run and disabled ones do not") {
  Bed bed;
  bed.apply(
      {row("1", "test-minimal"), group("2", {row("3", "test-configured", {{"retryCount", 1}}),
                                             with(row("4", "test-greeter"), "disabled", true)})});
  CHECK(bed.happened() == Trace{"+1", "+3"});
  CHECK(bed.loader.fiber("4") == nullptr);
  CHECK(bed.loader.config().plugins[1].group->size() == 2);
}

TEST_CASE("61: rows get ids and are found by them or by the way to them") {
  Bed bed;
  auto id = bed.create({{"plugin", "test-minimal"}});
  CHECK(id.size() == 8);
  CHECK(id.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(bed.loader.fiber(id) != nullptr);
  bed.create(group("outer", {group("inner", {})}));
  bed.create(row("deep", "test-minimal"), "outer:inner");
  CHECK_NOTHROW(bed.update("outer:inner:deep", [](LoaderEntry& e) { e.disabled = true; }));
  CHECK(bed.loader.fiber("deep") == nullptr);
  auto unknown = failure_of([&] { bed.update("zz", [](LoaderEntry&) {}); });
  CHECK(unknown.code == "ENTRY_UNKNOWN");
  CHECK(unknown.text == "cannot resolve entry zz");
  auto no_group = failure_of([&] { bed.create(row("x", "test-minimal"), id); });
  CHECK(no_group.code == "ENTRY_NO_GROUP");
  CHECK(no_group.text == "entry " + id + " is not a group");
}

TEST_CASE("62: a row whose plugin is not there is not kept") {
  int changes = 0;
  Bed bed;
  bed.loader.on_change([&] { ++changes; });
  auto failure = failure_of([&] { bed.create(row("M", "nope")); });
  CHECK(failure.code == "PLUGIN_UNUSABLE");
  CHECK_THAT(failure.text, ContainsSubstring("failed to import loader entry M (nope): "));
  CHECK(bed.loader.config().plugins.empty());
  CHECK(changes == 0);
}

TEST_CASE("63: a row whose body throws is not kept and one that waits is") {
  int changes = 0;
  Bed bed;
  bed.loader.on_change([&] { ++changes; });
  auto failure = failure_of([&] { bed.create(row("B", "test-thrower")); });
  CHECK(failure.text == "failed to apply loader entry B (test-thrower): the body's own error");
  CHECK(bed.loader.config().plugins.empty());
  CHECK(changes == 0);
  CHECK(bed.create(row("W", "test-greeting-user")) == "W");
  CHECK(bed.loader.fiber("W")->state() == FiberState::pending);
  CHECK(changes == 1);
}

TEST_CASE("64: another plugin that is not there leaves the running one") {
  Bed bed;
  bed.apply({row("g", "test-greeter")});
  auto fiber = bed.loader.fiber("g");
  bed.happened();
  auto failure = failure_of([&] { bed.update("g", [](LoaderEntry& e) { e.plugin = "nope"; }); });
  CHECK_THAT(failure.text, ContainsSubstring("failed to import loader entry g (nope)"));
  CHECK(bed.happened().empty());
  CHECK(bed.loader.fiber("g") == fiber);
  CHECK(bed.loader.config().plugins[0].plugin == "test-greeter");
}

TEST_CASE("66: a config that the body fails for leaves the old one running") {
  Bed bed;
  bed.apply({row("v", "test-version-1")});
  auto fiber = bed.loader.fiber("v");
  bed.happened();
  auto failure =
      failure_of([&] { bed.update("v", [](LoaderEntry& e) { e.config["fail"] = true; }); });
  CHECK(failure.code == "NOT_TODAY");
  CHECK_THAT(failure.text, ContainsSubstring("failed to apply loader entry v (test-versioned)"));
  CHECK(bed.happened().empty());
  CHECK(bed.loader.fiber("v") == fiber);
  CHECK(fiber->state() == FiberState::active);
  CHECK(bed.loader.config().plugins[0].config == json::object());
}

TEST_CASE("68: two rows with one id are refused before any starts") {
  Bed bed;
  auto failure = failure_of([&] {
    bed.apply({row("x", "test-minimal"), group("g", {row("x", "test-greeter")})});
  });
  CHECK_THAT(failure.text, ContainsSubstring("duplicate loader entry id: x"));
  CHECK(bed.happened().empty());
}

TEST_CASE("70: all rows that fail are told together in their order") {
  Bed bed;
  std::vector<std::string> errors;
  try {
    bed.apply({row("p", "test-thrower"), row("ok", "test-minimal"),
               row("q", "test-version-1", {{"fail", true}})});
  } catch (const AggregateError& error) {
    CHECK(error.code() == "ENTRIES_FAILED");
    CHECK_THAT(error.what(), ContainsSubstring("loader entries failed to apply"));
    for (const auto& each : error.errors()) errors.push_back(describe(each));
  }
  REQUIRE(errors.size() == 2);
  CHECK(errors[0] == "failed to apply loader entry p (test-thrower): the body's own error");
  CHECK(errors[1] == "failed to apply loader entry q (test-versioned): told to fail");
  CHECK(bed.loader.fibers().empty());
}

TEST_CASE("71: a row is stopped and kept and started again") {
  Bed bed;
  bed.apply({row("g", "test-greeter", {{"greeting", "hi"}})});
  bed.happened();
  bed.update("g", [](LoaderEntry& e) { e.disabled = true; });
  CHECK(bed.happened() == Trace{"-g"});
  CHECK(bed.loader.fiber("g") == nullptr);
  CHECK(bed.loader.config().plugins.size() == 1);
  bed.update("g", [](LoaderEntry& e) { e.disabled = false; });
  CHECK(bed.happened() == Trace{"+g"});
  CHECK(bed.greeting() == "hi you");
  bed.update("g", [](LoaderEntry& e) { e.config = json{{"greeting", "hi"}}; });
  CHECK(bed.happened().empty());
}

TEST_CASE("72: a group stops and starts what is in it") {
  Bed bed;
  bed.apply(
      {group("outer", {row("a", "test-minimal"), group("inner", {row("b", "test-minimal")})})});
  bed.happened();
  auto disable = [&](const char* id, bool disabled) {
    bed.update(id, [disabled](LoaderEntry& e) { e.disabled = disabled; });
    return bed.happened();
  };
  CHECK(disable("inner", true) == Trace{"-b"});
  CHECK(disable("outer", true) == Trace{"-a"});
  CHECK(disable("inner", false).empty());
  CHECK(disable("outer", false) == Trace{"+a", "+b"});
}

TEST_CASE("73: a row that moves restarts only where that changes anything") {
  Bed bed;
  bed.apply(
      {row("foo", "test-minimal"), group("alpha", {group("beta", {group("gamma", {})}, true)})});
  bed.happened();
  bed.move("foo", "alpha");
  CHECK(bed.happened().empty());
  bed.move("foo", "beta");
  CHECK(bed.happened() == Trace{"-foo"});
  bed.move("foo", "gamma");
  CHECK(bed.happened().empty());
  bed.move("foo", "");
  CHECK(bed.happened() == Trace{"+foo"});
  CHECK(failure_of([&] { bed.move("alpha", "gamma"); }).code == "ENTRY_UNKNOWN");  // into itself
  CHECK(bed.loader.config().plugins[1].id == "alpha");
}

TEST_CASE("75: a config that a plugin gives itself is kept once it runs") {
  int changes = 0;
  Bed bed;
  bed.loader.on_change([&] { ++changes; });
  bed.apply({row("g", "test-greeter", {{"greeting", "a"}})});
  auto fiber = bed.loader.fiber("g");
  run(bed.loop, fiber->update({{"greeting", "b"}}, Save::no));
  CHECK(bed.loader.config().plugins[0].config == json{{"greeting", "a"}});
  run(bed.loop, fiber->update({{"greeting", "c"}}));
  CHECK(bed.loader.config().plugins[0].config == json{{"greeting", "c"}});
  CHECK(changes == 1);
  CHECK(bed.greeting() == "c you");
  CHECK(failure_of([&] {
          run(bed.loop, fiber->update({{"greetin", "d"}}));
        }).code == "CONFIG_INVALID");
  CHECK(changes == 1);
}

TEST_CASE("76: rows have services apart or under a shared label") {
  Bed bed;
  auto isolate = [](json row, json how) {
    return with(std::move(row), "isolate", {{"test-greeter/1", how}});
  };
  bed.apply({row("p-root", "test-greeter", {{"greeting", "root"}}),
             isolate(group("g-own", {row("p-own", "test-greeter", {{"greeting", "own"}}),
                                     row("u-own", "test-greeting-user")}),
                     true),
             isolate(row("p-beta", "test-greeter", {{"greeting", "beta"}}), "beta"),
             isolate(row("u-alone", "test-minimal"), true)});
  auto seen = [&](const char* id) {
    auto fiber = bed.loader.fiber(id);
    auto found = Context(fiber, fiber->scope()).find<Greeter>();
    return found ? found->greet("x") : "none";
  };
  CHECK(bed.greeting() == "root you");
  CHECK(seen("u-own") == "own x");
  CHECK(seen("p-beta") == "beta x");
  CHECK(seen("u-alone") == "none");
  bed.create(isolate(row("u-beta", "test-minimal"), "beta"));
  CHECK(seen("u-beta") == "beta x");
  auto alone = bed.create(isolate(row("u-wait", "test-greeting-user"), true));
  CHECK(bed.loader.fiber(alone)->state() == FiberState::pending);
}

TEST_CASE("77: a changed isolation restarts only whom it concerns") {
  Bed bed;
  bed.apply({row("p", "test-greeter"), row("u", "test-greeting-user")});
  bed.happened();
  auto set = [&](const char* id, std::map<std::string, std::variant<bool, std::string>> isolate) {
    bed.update(id, [&](LoaderEntry& e) { e.isolate = isolate; });
    return bed.happened();
  };
  CHECK(set("u", {{"test-greeter/1", true}}) == Trace{"-u"});  // waits, apart
  CHECK(bed.loader.fiber("u")->state() == FiberState::pending);
  CHECK(set("u", {}) == Trace{"+u"});
  // The user follows its provider away, and back.
  CHECK(set("p", {{"test-greeter/1", std::string("x")}}) == Trace{"+p", "-u", "-p"});
  CHECK(bed.loader.fiber("u")->state() == FiberState::pending);
  CHECK(set("p", {}).size() == 3);
  CHECK(bed.loader.fiber("u")->state() == FiberState::active);
  bed.apply({with(group("g", {row("p", "test-greeter"), row("u", "test-greeting-user")}), "isolate",
                  {{"test-greeter/1", "one"}})});
  bed.happened();
  bed.apply(
      {with(group("g", {with(group("h", {row("p", "test-greeter"), row("u", "test-greeting-user")}),
                             "isolate", {{"test-greeter/1", "one"}})}),
            "isolate", {{"test-greeter/1", "one"}})});
  CHECK(bed.happened().empty());
}

TEST_CASE("78: a row that waits is no task that is pending") {
  Bed bed;
  bed.loader.provide();
  bool done = false;
  auto apply = [](Bed* b, bool* out) -> Task<> {
    auto applying = b->loader.apply(
        read_config<LoaderConfig>(
            json{{"plugins",
                  {row("slow", "test-greeting-user"), row("p", "test-greeter"),
                   row("waits", "test-first-relay"), row("bar", "test-third-relay")}}},
            "test"),
        "test");
    co_await applying;
    *out = true;
  };
  auto qux = bed.root.plugin(
      plugin("qux", {std::string(Loader::settled_service)}, [](const Context&, const json&) {}),
      {});
  TaskScope scope(bed.loop, [](std::exception_ptr) {});
  scope.start(apply(&bed, &done));
  auto state_of = [&](std::string_view name) {
    for (const Fiber* fiber : bed.root.fiber()->registry().fibers())
      if (fiber->name() == name) return fiber->state();
    return FiberState::disposed;
  };
  run_until(bed.loop, [&] { return state_of("slow") == FiberState::loading; });
  CHECK(state_of("bar") == FiberState::pending);
  CHECK(qux->state() == FiberState::pending);
  CHECK_FALSE(done);
  run_until(bed.loop, [&] { return done && qux->state() == FiberState::active; });
  CHECK(state_of("slow") == FiberState::active);
  CHECK(state_of("bar") == FiberState::pending);
}

TEST_CASE("79: the whole loader is awaited") {
  Bed bed;
  bed.apply({row("a", "test-version-1"), row("u", "test-greeting-user")});
  CHECK_NOTHROW(run(bed.loop, bed.loader.settled()));
  // A row fails later, by an update of its own fiber.
  CHECK_THROWS(run(bed.loop, bed.loader.fiber("a")->update({{"fail", true}})));
  CHECK(failure_of([&] { run(bed.loop, bed.loader.settled()); }).code == "NOT_TODAY");
}

TEST_CASE("81: rows are written in a fixed order of keys") {
  Bed bed;
  bed.apply({with(row("g", "test-greeter", {{"greeting", "x"}}), "isolate",
                  {{"b/1", true}, {"a/1", "l"}}),
             group("h", {row("m", "test-minimal")}, true)});
  CHECK(bed.loader.to_json().dump() ==
        R"({"plugins":[{"id":"g","plugin":"test-greeter","isolate":{"a/1":"l","b/1":true},)"
        R"("config":{"greeting":"x"}},{"id":"h","disabled":true,"group":[{"id":"m",)"
        R"("plugin":"test-minimal","config":{}}]}]})");
  // What is written is read again.
  CHECK_NOTHROW(read_config<LoaderConfig>(json::parse(bed.loader.to_json().dump()), "again"));
}

TEST_CASE("82: a config file that is broken is named and the last good one keeps running") {
  Bed bed;
  Scratch scratch;
  const std::string file = scratch / "stockade.json";
  auto refresh = [&] {
    auto config = read_loader_config(read_file(file), file);
    run(bed.loop, bed.loader.apply(std::move(config), file));
  };
  write_file(file, R"({"$schema": "x", "plugins": [{"plugin": "test-greeter"}]})");
  refresh();
  CHECK(bed.greeting() == "hello you");
  write_file(file, "{\"plugins\": [");
  auto broken = failure_of(refresh);
  CHECK(broken.code == "CONFIG_INVALID");
  CHECK(broken.operand == file);
  CHECK_THAT(broken.text, ContainsSubstring("failed to parse config file " + file));
  write_file(file, "");
  CHECK_THAT(failure_of(refresh).text, ContainsSubstring("is empty"));
  write_file(file, "[]");
  CHECK_THAT(failure_of(refresh).text, ContainsSubstring("failed to validate config file " + file));
  write_file(file, R"({"plugins": [{"plugin": "test-thrower"}]})");
  CHECK_THAT(failure_of(refresh).text, ContainsSubstring("the body's own error"));
  CHECK(bed.greeting() == "hello you");
  write_file(file, R"({"plugins": [{"plugin": "test-greeter", "config": {"greeting": "hi"}}]})");
  refresh();
  CHECK(bed.greeting() == "hi you");
}

TEST_CASE("loader: changes are carried out one after the other") {
  Bed bed;
  bed.apply({row("g", "test-greeter", {{"greeting", "0"}})});
  TaskScope scope(bed.loop, [](std::exception_ptr error) { FAIL(describe(error)); });
  for (int i = 1; i <= 5; ++i)
    scope.start(bed.loader.update("g", [i](LoaderEntry& e) {
      e.config = json{{"greeting", std::to_string(i)}};
    }));
  run_until(bed.loop, [&] { return scope.size() == 0; });
  CHECK(bed.greeting() == "5 you");
}

TEST_CASE("loader: a row that is renamed gives its service on without a gap") {
  Bed bed;
  bed.apply({row("p", "test-greeter"), row("u", "test-greeting-user")});
  bed.happened();
  bed.apply({row("q", "test-greeter"), row("u", "test-greeting-user")});
  CHECK(bed.happened() == Trace{"+q", "+u", "-u", "-p"});
  CHECK(bed.loader.fiber("u")->state() == FiberState::active);
}

}  // namespace
}  // namespace stockade::test
