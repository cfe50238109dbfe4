// SPDX-License-Identifier: MIT
// What became of a call, in cases that this kind of software gets wrong.
#include <unistd.h>

#include "tests/e2e/world.hpp"

using namespace stockade::test;

BACKEND_TEST("a denial is seen whatever program tells of it and wherever") {
  const std::string out = world.outside();
  const std::string file = world.outside_file("f", "untouched");
  write_file(world.workspace() + "/Makefile", "all:\n\ttouch " + out + "/made\n");
  std::vector<std::string> commands{
      "touch " + out + "/zz",
      "touch " + out + "/zz 2>&1",
      "touch " + out + "/zz; seq 1 300000; exit 1",
      "touch " + out + "/zz; seq 1 100000 >&2; exit 1",
      "(touch " + out + "/zz; seq 1 100000; exit 1) 2>&1",
      "git init " + out + "/r",
      "make",
      "make 2>&1",
      "/usr/bin/python3 -c 'open(\"" + out + "/zz\", \"w\")'",
      "mkdir " + out + "/d",
      "rm " + file,
      "ln " + file + " hard",
  };
  if (exists("/usr/bin/node"))
    commands.push_back("node -e 'fs.writeFileSync(\"" + out + "/zz\", \"\")'");
  for (const auto& command : commands) {
    INFO(command);
    auto result = world.json("workspace-write", command);
    CHECK(result["outcome"] == "denied");
    CHECK(result["sandbox"]["denied"] == true);
    CHECK(result["sandbox"]["backend"] == world.backend);
    CHECK_FALSE(result["sandbox"]["evidence"].get<std::string>().empty());
  }
  CHECK(read_file(file) == "untouched");
  CHECK_FALSE(exists(out + "/zz"));
}

BACKEND_TEST("a denial whose text was swallowed is a failure without a claim") {
  auto result = world.json("read-only", "touch f 2>/dev/null");
  CHECK(result["outcome"] == "failed");
  CHECK(result["exitCode"] == 1);
  CHECK(result["sandbox"]["denied"] == false);
  CHECK_FALSE(result["sandbox"].contains("evidence"));
  CHECK(world.json("read-only", "exit 1")["sandbox"]["denied"] == false);
  CHECK(world.json("read-only", "touch f; true")["outcome"] == "ok");
}

BACKEND_TEST("without a sandbox nothing is a denial") {
  auto result = world.json("danger-full-access",
                           "echo 'x: Permission denied; Read-only file system' >&2; exit 1");
  CHECK(result["outcome"] == "failed");
  CHECK(result["sandbox"]["denied"] == false);
  CHECK(result["sandbox"]["ran"] == true);
  CHECK_FALSE(result["sandbox"].contains("enforcement"));
}

BACKEND_TEST("a command cannot forge the failure of its runner") {
  for (const char* mode : {"read-only", "danger-full-access"})
    for (const char* command :
         {"echo 'bwrap: Can'\\''t mount proc on /newroot/proc: Operation not permitted' >&2; exit "
          "1",
          "echo 'landlock: restrict failed' >&2; exit 125",
          "echo 'landlock-run: cannot restrict' >&2; exit 125",
          "echo '{\"status\":\"exec-failed\",\"errno\":2}' >&3; exit 127", "exit 1"}) {
      INFO(mode << ": " << command);
      auto result = world.json(mode, command);
      CHECK(result["outcome"] == "failed");
      CHECK(result["sandbox"]["ran"] == true);
      CHECK(result["sandbox"]["runnerFailed"] == false);
      CHECK_FALSE(result.contains("error"));
    }
}

TEST_CASE("classification: a runner's own error in the words of a denial is no denial") {
  for_each_user("custom", [](const World& world) {
    const std::string runner = world.outside() + "/runner";
    write_file(runner,
               "#!/bin/sh\necho \"bwrap: Can't mkdir /srv/x: Read-only file system\" >&2\nexit 1\n",
               0755);
    const std::string config = world.workspace() + "/config.json";
    write_file(config, R"({"plugins": [{"plugin": "sandbox"}, {"plugin": "sandbox-local", "config":
      {"runnerCommand": [")" +
                           runner + R"("], "runnerFailureSignatures": ["bwrap: "]}},
      {"plugin": "bash-sandbox"}, {"plugin": "tool-bash"}, {"plugin": "script"}]})");
    auto program =
        world.exec({"--json", "--config", config}, "touch " + world.workspace() + "/ran");
    auto result = nlohmann::json::parse(program.out);
    CHECK(result["outcome"] == "runner-failed");
    CHECK(result["sandbox"]["denied"] == false);
    CHECK_THAT(result["error"]["message"].get<std::string>(),
               ContainsSubstring("Can't mkdir /srv/x"));
    CHECK_FALSE(exists(world.workspace() + "/ran"));
  });
}
