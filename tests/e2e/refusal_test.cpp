// SPDX-License-Identifier: MIT
// What is refused before anything is spawned, with an error that names it.
#include <sys/stat.h>
#include <unistd.h>

#include "tests/e2e/world.hpp"

using namespace stockade::test;

namespace {

void refused(const World& world, const nlohmann::json& result, const std::string& code,
             const std::string& named) {
  INFO(result.dump());
  CHECK(result["error"]["code"] == code);
  CHECK_THAT(result["error"]["message"].get<std::string>(), ContainsSubstring(named));
  CHECK(result["status"] == 125);
  CHECK(result["sandbox"]["denied"] == false);
  CHECK(result["sandbox"]["ran"] == false);
  CHECK_FALSE(exists(world.workspace() + "/ran"));
}

nlohmann::json in_workspace(const World& world, const std::string& root) {
  auto program = world.exec({"--json", "--mode", "workspace-write", "--backend", world.backend,
                             "--workspace", root, "--cwd", world.workspace()},
                            "touch " + world.workspace() + "/ran");
  auto json = nlohmann::json::parse(program.out);
  json["status"] = program.status;
  return json;
}

}  // namespace

BACKEND_TEST("a root that would undo the sandbox is no workspace") {
  for (const char* root : {"/", "/proc", "/proc/1", "/sys", "/dev", "/dev/shm", "/run"})
    refused(world, in_workspace(world, root), "WORKSPACE_REFUSED", root);
  std::string missing = world.workspace() + "/missing";
  refused(world, in_workspace(world, missing), "WORKSPACE_REFUSED", missing);
  std::string file = world.outside_file("file", "");
  refused(world, in_workspace(world, file), "WORKSPACE_REFUSED", file);
  for (const char* own : {"", "/bin", "/lib", "/lib/stockade", "/lib/stockade/plugins"})
    refused(world, in_workspace(world, world.prefix + own), "WORKSPACE_REFUSED", "stockade");
  refused(world, in_workspace(world, "/var/tmp"), "WORKSPACE_REFUSED", "stockade");
  refused(world, in_workspace(world, "/usr/bin"), "WORKSPACE_REFUSED", "bwrap");
}

BACKEND_TEST("a root through a symbolic link means the directory it leads to") {
  std::string link = world.outside() + "/link";
  REQUIRE(symlink(world.workspace().c_str(), link.c_str()) == 0);
  auto result = in_workspace(world, link);
  CHECK(result["outcome"] == "ok");
  CHECK(exists(world.workspace() + "/ran"));
}

BACKEND_TEST("a working directory that is not there is named and is no denial") {
  for (const char* mode : {"read-only", "workspace-write", "danger-full-access"}) {
    std::string missing = world.workspace() + "/missing";
    auto gone = world.json(mode, "touch ran; pwd", {"--cwd", missing});
    refused(world, gone, "WORKDIR_UNUSABLE", missing);
    CHECK(gone["outcome"] == "failed");
    std::string file = world.outside_file("file", "");
    refused(world, world.json(mode, "pwd", {"--cwd", file}), "WORKDIR_UNUSABLE", file);
  }
}

TEST_CASE("bwrap: a working directory below its private tmp is refused and not replaced") {
  for_each_user("bwrap", [](const World& world) {
    Scratch hidden("/tmp", 0777);
    auto result = world.json("workspace-write", "pwd", {"--cwd", hidden.path()});
    refused(world, result, "WORKDIR_REFUSED", hidden.path());
    CHECK(world.json("read-only", "pwd", {"--cwd", hidden.path()})["stdout"]["text"] ==
          hidden.path() + "\n");
  });
}

BACKEND_TEST("a workspace below tmp works") {
  Scratch below("/tmp", 0777);
  auto program = world.exec({"--json", "--mode", "workspace-write", "--backend", world.backend,
                             "--workspace", below.path()},
                            "pwd; echo x > f; chmod 666 f");
  auto result = nlohmann::json::parse(program.out);
  CHECK(result["outcome"] == "ok");
  CHECK(result["stdout"]["text"] == below.path() + "\n");
  CHECK(read_file(below / "f") == "x\n");
}

BACKEND_TEST("awkward workspaces work") {
  for (const std::string name : {"sp ace", "nl\nx", "\xC3\xBCn\xC3\xAF", "quo\"te'", "-dash",
                                 "tab\t", "\xff", "a:b", "$(touch p)", "back\\slash"}) {
    std::string root = world.workspace() + "/" + name;
    REQUIRE(mkdir(root.c_str(), 0777) == 0);
    chmod(root.c_str(), 0777);
    auto program =
        world.exec({"--mode", "workspace-write", "--backend", world.backend, "--workspace", root},
                   "touch \"$PWD/t\" && pwd");
    INFO(name << ": " << program.err);
    CHECK(program.status == 0);
    CHECK(program.out == root + "\n");
    CHECK(exists(root + "/t"));
    CHECK_FALSE(exists(world.workspace() + "/p"));
  }
}

BACKEND_TEST("a command that cannot be passed on is an error of its own") {
  auto line = [&](const std::string& command) {
    ProgramOptions options;
    options.input =
        nlohmann::json{{"id", 1}, {"tool", "bash"}, {"arguments", {{"command", command}}}}.dump() +
        "\n";
    auto program = world.stockade({"run", "--backend", world.backend, "-"}, options);
    return nlohmann::json::parse(program.out);
  };
  auto nul = line(std::string("echo a\0b", 8));
  CHECK(nul["isError"] == true);
  CHECK(nul["structuredContent"]["error"]["code"] == "REQUEST_INVALID");
  CHECK(nul["structuredContent"]["outcome"] == "failed");
}
