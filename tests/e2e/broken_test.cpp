// SPDX-License-Identifier: MIT
// Everything that can be missing, broken or misspelt: an error that names it, and nothing runs.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/e2e/world.hpp"

using namespace stockade::test;

namespace {

// A copy of the installation that a test may break.
class Copy {
 public:
  explicit Copy(const std::string& parent = "/var/tmp") : scratch_(parent) {
    std::filesystem::copy(
        installation(), prefix(),
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  }
  std::string prefix() const { return scratch_ / "prefix"; }
  std::string plugin(const std::string& name) const {
    return prefix() + "/lib/stockade/plugins/" + name + ".so";
  }
  std::string launcher() const { return prefix() + "/lib/stockade/stockade-launch"; }

 private:
  Scratch scratch_;
};

void not_run(const World& world, const nlohmann::json& result, const std::string& code) {
  INFO(result.dump());
  CHECK(result["outcome"] == "runner-failed");
  CHECK(result["error"]["code"] == code);
  CHECK(result["status"] == 125);
  CHECK(result["sandbox"]["runnerFailed"] == true);
  CHECK(result["sandbox"]["denied"] == false);
  CHECK_FALSE(exists(world.workspace() + "/ran"));
}

std::string message(const nlohmann::json& result) {
  return result["error"]["message"];
}

// Runs in a private mount namespace where /usr/bin/bwrap is an empty file.
ProgramResult without_bwrap(const World& world, std::vector<std::string> arguments) {
  std::string empty = world.outside_file("empty", "");
  std::vector<std::string> argv{"unshare",
                                "--mount",
                                "bash",
                                "-c",
                                "mount --bind \"$0\" \"$(readlink -f /usr/bin/bwrap)\" && exec "
                                "setpriv --reuid \"$1\" --regid \"$1\" "
                                "--clear-groups \"${@:2}\"",
                                empty,
                                std::to_string(world.uid),
                                world.prefix + "/bin/stockade"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  ProgramOptions options;
  options.cwd = world.workspace();
  return run_program(argv, options);
}

std::string custom_runner(const std::string& runner) {
  return R"({"plugins": [{"plugin": "sandbox"}, {"plugin": "sandbox-local", "config":
    {"runnerCommand": [")" +
         runner + R"("], "runnerFailureSignatures": ["fake-runner: "]}},
    {"plugin": "bash-sandbox"}]})";
}

}  // namespace

TEST_CASE("broken: a runner that is missing or cannot be executed never runs the command") {
  for (uid_t uid : users()) {
    World world("custom", uid);
    std::string config = world.workspace() + "/config.json";
    auto run = [&](const std::string& runner) {
      write_file(config, custom_runner(runner));
      auto program = world.exec({"--json", "--config", config}, "touch ran; false");
      auto json = nlohmann::json::parse(program.out);
      json["status"] = program.status;
      return json;
    };
    std::string missing = world.outside() + "/missing";
    auto gone = run(missing);
    not_run(world, gone, "SANDBOX_UNAVAILABLE");
    CHECK_THAT(message(gone), ContainsSubstring(missing) && ContainsSubstring("ENOENT"));

    std::string plain = world.outside_file("plain", "#!/bin/sh\n");
    chmod(plain.c_str(), 0644);
    auto refused = run(plain);
    not_run(world, refused, "SANDBOX_UNAVAILABLE");
    CHECK_THAT(message(refused), ContainsSubstring(plain) && ContainsSubstring("EACCES"));

    std::string orphan = world.outside_file("orphan", "#!/no/such/interpreter\n");
    chmod(orphan.c_str(), 0755);
    not_run(world, run(orphan), "SANDBOX_UNAVAILABLE");

    std::string broken = world.outside_file(
        "broken", "#!/bin/sh\necho 'fake-runner: cannot open: Permission denied' >&2; exit 125\n");
    chmod(broken.c_str(), 0755);
    auto failed = run(broken);
    not_run(world, failed, "SANDBOX_UNAVAILABLE");
    CHECK_THAT(message(failed), ContainsSubstring("Runner failure: fake-runner: cannot open"));
  }
}

BACKEND_TEST("a sandbox that cannot be set up runs nothing and says why") {
  ProgramOptions options;
  if (geteuid() == 0) options.uid = world.uid;
  options.cwd = world.workspace();
  auto run = [&](std::vector<std::string> words, const std::string& path) {
    options.environment = {{"PATH", path}};
    for (std::string word :
         {world.prefix + "/bin/stockade", std::string("exec"), std::string("--json"),
          std::string("--mode"), std::string("workspace-write"), std::string("--backend"),
          world.backend, std::string("--"), std::string("touch ran")})
      words.push_back(std::move(word));
    auto program = run_program(words, options);
    INFO(program.err);
    auto result = nlohmann::json::parse(program.out);
    result["status"] = program.status;
    return result;
  };
  // The tests' own programs may lie where only root can reach them.
  const std::string withhold = world.outside() + "/withhold";
  std::filesystem::copy_file(std::string(TEST_PROGRAMS) + "/withhold", withhold);
  const char* withheld = world.backend == "landlock" ? "--landlock" : "--namespaces";
  not_run(world, run({withhold, withheld, "--"}, "/usr/bin:/bin"), "SANDBOX_UNAVAILABLE");
  auto no_shell = run({}, "/nonexistent");
  not_run(world, no_shell, "SANDBOX_UNAVAILABLE");
  CHECK(no_shell["sandbox"]["ran"] == false);
  CHECK_THAT(message(no_shell), ContainsSubstring("bash"));
}

TEST_CASE("broken: a missing bwrap is named and the chain works without it") {
  if (geteuid() != 0) {
    SUCCEED("hiding bwrap needs a mount, which this user may not make");
    return;
  }
  for (uid_t uid : users()) {
    World world("bwrap", uid);
    auto alone =
        without_bwrap(world, {"exec", "--json", "--backend", "bwrap", "--", "touch ran; false"});
    INFO(alone.out << alone.err);
    auto result = nlohmann::json::parse(alone.out);
    result["status"] = alone.status;
    not_run(world, result, "SANDBOX_UNAVAILABLE");
    CHECK_THAT(message(result), ContainsSubstring("bwrap"));

    auto chain = without_bwrap(world, {"exec", "--json", "--", "echo x > f"});
    auto fallback = nlohmann::json::parse(chain.out);
    CHECK(fallback["sandbox"]["backend"] == "namespace");
    CHECK(fallback["sandbox"]["enforcement"] == "full");
    CHECK(fallback["outcome"] == "denied");
  }
}

TEST_CASE("broken: without a usable backend nothing runs and every reason is told") {
  if (geteuid() != 0) {
    SUCCEED("hiding bwrap needs a mount, which this user may not make");
    return;
  }
  Copy copy;
  REQUIRE(unlink(copy.launcher().c_str()) == 0);
  for (uid_t uid : users()) {
    World world("none", uid);
    world.prefix = copy.prefix();
    auto program = without_bwrap(world, {"exec", "--json", "--", "touch ran"});
    INFO(program.out << program.err);
    auto result = nlohmann::json::parse(program.out);
    result["status"] = program.status;
    not_run(world, result, "SANDBOX_UNAVAILABLE");
    CHECK_THAT(message(result), ContainsSubstring("namespace: ") && ContainsSubstring("bwrap: ") &&
                                    ContainsSubstring("landlock: "));
  }
}

BACKEND_TEST("a launcher that is missing or broken never runs the command") {
  World mutable_world(world.backend, world.uid);
  Copy copy;
  mutable_world.prefix = copy.prefix();
  std::string saved = read_file(copy.launcher());
  write_file(copy.launcher(), saved, 0644);
  auto refused = mutable_world.json("read-only", "touch ran; false");
  not_run(mutable_world, refused, "SANDBOX_UNAVAILABLE");
  write_file(copy.launcher(), "#!/bin/sh\nexit 0\n", 0755);
  not_run(mutable_world, mutable_world.json("read-only", "touch ran; false"),
          "SANDBOX_UNAVAILABLE");
  write_file(copy.launcher(), "#!/bin/sh\nexit 1\n", 0755);
  not_run(mutable_world, mutable_world.json("read-only", "touch ran; false"),
          "SANDBOX_UNAVAILABLE");
  unlink(copy.launcher().c_str());
  not_run(mutable_world, mutable_world.json("read-only", "touch ran; false"),
          "SANDBOX_UNAVAILABLE");
}

TEST_CASE("broken: an installation below tmp works though the sandbox has a private tmp") {
  Copy copy("/tmp");
  auto works = [&](const World& world) {
    World moved(world.backend, world.uid);
    moved.prefix = copy.prefix();
    CHECK(moved.json("workspace-write", "echo x > f")["outcome"] == "ok");
    std::string before = read_file(copy.launcher());
    CHECK(moved.json("workspace-write", "echo x >> " + copy.launcher())["outcome"] != "ok");
    CHECK(read_file(copy.launcher()) == before);
    auto chain = nlohmann::json::parse(moved.exec({"--json"}, "true").out);
    CHECK(chain["sandbox"]["backend"] == "namespace");
  };
  for_each_user("bwrap", works);
  for_each_user("namespace", works);
}

TEST_CASE(
    "landlock: an installation below the temporary area is refused and not left to be replaced") {
  Copy copy("/tmp");
  for_each_user("landlock", [&](const World& world) {
    World moved(world.backend, world.uid);
    moved.prefix = copy.prefix();
    not_run(moved, moved.json("workspace-write", "touch ran"), "SANDBOX_UNAVAILABLE");
    CHECK(moved.json("read-only", "true")["outcome"] == "ok");
  });
}

TEST_CASE("broken: a custom runner inside the workspace is refused") {
  for_each_user("custom", [&](const World& world) {
    std::string runner = world.workspace() + "/runner";
    write_file(runner, "#!/bin/sh\nexec bwrap \"$@\"\n", 0755);
    std::string config = world.outside_file("config.json", custom_runner(runner));
    auto program =
        world.exec({"--json", "--config", config, "--mode", "workspace-write"}, "touch ran");
    auto result = nlohmann::json::parse(program.out);
    result["status"] = program.status;
    not_run(world, result, "WORKSPACE_REFUSED");
    CHECK_THAT(message(result), ContainsSubstring(runner));
  });
}

TEST_CASE("broken: a plugin file that is missing or damaged is named") {
  World world("bwrap", users().back());
  Copy copy;
  world.prefix = copy.prefix();
  for (const char* name : {"sandbox", "sandbox-local", "bash-sandbox"}) {
    std::string path = copy.plugin(name);
    std::string whole = read_file(path);
    REQUIRE_FALSE(whole.empty());
    auto broken = [&] {
      auto result = world.json("read-only", "touch ran");
      not_run(world, result, "PLUGIN_UNUSABLE");
      CHECK_THAT(message(result), ContainsSubstring(path));
    };
    unlink(path.c_str());
    broken();
    for (std::size_t kept : {std::size_t{0}, std::size_t{3}, std::size_t{100}, whole.size() / 10}) {
      write_file(path, whole.substr(0, kept));
      broken();
    }
    write_file(path, std::string(5000, 'x'));
    broken();
    write_file(path, whole);
  }
  CHECK(world.json("read-only", "true")["outcome"] == "ok");
}

TEST_CASE("broken: a config error names the key and the nearest right one") {
  World world("bwrap", users().back());
  std::string config = world.workspace() + "/config.json";
  auto run = [&](const std::string& text) {
    write_file(config, text);
    auto program = world.exec({"--json", "--config", config}, "touch ran");
    auto json = nlohmann::json::parse(program.out);
    json["status"] = program.status;
    not_run(world, json, json["error"]["code"]);
    return json;
  };
  auto entry = [](const std::string& plugin, const std::string& settings) {
    return R"({"plugins": [{"plugin": ")" + plugin + R"(", "config": )" + settings + "}]}";
  };
  CHECK_THAT(message(run(entry("bash-sandbox", R"({"timeoutms": 5})"))),
             ContainsSubstring("$.timeoutms: unknown key (did you mean \"timeoutMs\"?)"));
  CHECK_THAT(message(run(entry("sandbox", R"({"writeableRoots": ["/w"]})"))),
             ContainsSubstring("$.writeableRoots: unknown key"));
  CHECK_THAT(message(run(entry("sandbox", R"({"mode": "workspace_write"})"))),
             ContainsSubstring("did you mean \"workspace-write\""));
  CHECK_THAT(message(run(entry("sandbox-local", R"({"backends": ["bwarp"]})"))),
             ContainsSubstring("did you mean \"bwrap\""));
  CHECK_THAT(message(run(R"({"plugins": [{"plugin": "sandbox-locl"}]})")),
             ContainsSubstring("did you mean \"sandbox-local\""));
  CHECK_THAT(message(run(R"({"plugin": []})")), ContainsSubstring("did you mean \"plugins\""));
  for (const char* timeout : {"0", "-1", "1.5", "\"1000\"", "1e12", "null", "99999999999999999999"})
    CHECK(run(entry("bash-sandbox", std::string(R"({"timeoutMs": )") + timeout +
                                        "}"))["error"]["code"] == "CONFIG_INVALID");
  CHECK_THAT(message(run("")), ContainsSubstring(config) && ContainsSubstring("is empty"));
  CHECK_THAT(message(run("null")), ContainsSubstring("expected an object"));
  CHECK_THAT(message(run("{\"plugins\": [}")), ContainsSubstring("line 1, column 14"));
  CHECK_THAT(message(run("\xEF\xBB\xBF{}")), ContainsSubstring("byte order mark"));
  CHECK_THAT(message(run(R"({"plugins": [], "plugins": []})")), ContainsSubstring("twice"));
  unlink(config.c_str());
  auto missing = world.exec({"--json", "--config", config}, "touch ran");
  CHECK_THAT(missing.out, ContainsSubstring(config) && ContainsSubstring("ENOENT"));
  CHECK(missing.status == 125);
}

TEST_CASE("broken: a composition without a sandbox does not run unconfined") {
  World world("bwrap", users().back());
  std::string config = world.workspace() + "/config.json";
  write_file(config, R"({"plugins": [{"plugin": "sandbox"}, {"plugin": "bash-sandbox"}]})");
  auto program = world.exec({"--json", "--config", config}, "touch ran");
  auto result = nlohmann::json::parse(program.out);
  result["status"] = program.status;
  not_run(world, result, "SERVICE_UNAVAILABLE");
  CHECK_THAT(message(result),
             ContainsSubstring("the entry \"bash-sandbox\" waits for \"sandbox/1\""));
}

TEST_CASE("broken: the environment cannot weaken or redirect the sandbox") {
  World world("bwrap", users().back());
  std::string fake = world.workspace() + "/bwrap";
  write_file(fake, "#!/bin/sh\ntouch " + world.workspace() + "/ran\n", 0755);
  write_file(world.workspace() + "/stockade-launch",
             "#!/bin/sh\ntouch " + world.workspace() + "/ran\n", 0755);
  ProgramOptions options;
  options.environment = {{"PATH", world.workspace() + ":/usr/bin:/bin"},
                         {"SANDBOX", "1"},
                         {"STOCKADE_MODE", "danger-full-access"},
                         {"STOCKADE_BACKEND", "none"}};
  auto program = world.stockade({"exec", "--json", "--", "touch f"}, options);
  CHECK(nlohmann::json::parse(program.out)["outcome"] == "denied");
  CHECK_FALSE(exists(world.workspace() + "/ran"));
  CHECK_FALSE(exists(world.workspace() + "/f"));
}
