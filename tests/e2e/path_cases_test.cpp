// SPDX-License-Identifier: MIT
// Directories that are awkward, gone, or not what they were.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/e2e/world.hpp"
#include "tests/support/json_lines.hpp"

using namespace stockade::test;

namespace {

std::string make_directory(const World& world, const std::string& path) {
  REQUIRE(mkdir(path.c_str(), 0755) == 0);
  if (geteuid() == 0) REQUIRE(chown(path.c_str(), world.uid, world.uid) == 0);
  return path;
}

}  // namespace

BACKEND_TEST("a working directory of any name is the one that the command is in") {
  for (const std::string& name :
       {std::string("sp ace"), std::string("nl\nx"), std::string("ünï"), std::string("quo\"te'"),
        std::string("-dash"), std::string("tab\t"), std::string("\xff"), std::string("a:b"),
        std::string("$(touch p)"), std::string(255, 'n')}) {
    INFO(name);
    const std::string path = make_directory(world, world.workspace() + "/" + name);
    for (const char* mode : {"workspace-write", "danger-full-access"}) {
      auto program = world.exec({"--mode", mode, "--backend", world.backend, "--workspace",
                                 world.workspace(), "--cwd", path},
                                "touch \"$PWD/t\" && pwd");
      INFO(program.err);
      CHECK(program.status == 0);
      CHECK(program.out == path + "\n");
      CHECK(exists(path + "/t"));
      unlink((path + "/t").c_str());
    }
    CHECK_FALSE(exists(world.workspace() + "/p"));
  }
}

BACKEND_TEST("a long path works and one that is too long is an error that says so") {
  std::string path = world.workspace();
  while (path.size() + 200 < 3900) path = make_directory(world, path + "/" + std::string(199, 'd'));
  for (const char* mode : {"workspace-write", "danger-full-access"}) {
    INFO(mode);
    auto result = world.json(mode, "pwd", {"--cwd", path});
    CHECK(result["outcome"] == "ok");
    CHECK(result["stdout"]["text"] == path + "\n");
    auto too_long =
        world.json(mode, "touch f",
                   {"--cwd", path + "/" + std::string(300, 'x') + "/" + std::string(300, 'y')});
    CHECK((too_long["outcome"] == "failed" || too_long["outcome"] == "runner-failed"));
    CHECK(too_long["sandbox"]["denied"] == false);
    CHECK_FALSE(too_long["error"]["message"].get<std::string>().empty());
  }
}

BACKEND_TEST("a working directory that is gone is named and nothing runs elsewhere") {
  for (const char* mode : {"workspace-write", "danger-full-access"}) {
    INFO(mode);
    const std::string directory = make_directory(world, world.workspace() + "/d");
    const std::string home = world.workspace() + "/home";
    std::filesystem::create_directories(home + "/build");
    std::filesystem::permissions(home, std::filesystem::perms::all);
    std::filesystem::permissions(home + "/build", std::filesystem::perms::all);
    auto line = [&](int id, const std::string& command, const std::string& workdir) {
      return nlohmann::json{{"id", id},
                            {"tool", "bash"},
                            {"arguments", {{"command", command}, {"workdir", workdir}}}}
                 .dump() +
             "\n";
    };
    ProgramOptions options;
    options.environment = {{"HOME", home}};
    options.input = line(1, "rmdir " + directory, directory) +
                    line(2, "pwd; rm -rf ./build; rm -rf ~/build", directory) +
                    line(3, "pwd", world.workspace()) + line(4, "mkdir d", world.workspace()) +
                    line(5, "pwd", directory);
    auto program = world.stockade(
        {"run", "--mode", mode, "--backend", world.backend, "--workspace", world.workspace(), "-"},
        options);
    const auto results = json_lines(program.out);
    REQUIRE(results.size() == 5);
    auto gone = results[1]["structuredContent"];
    CHECK(gone["outcome"] == "failed");
    CHECK(gone["sandbox"]["ran"] == false);
    CHECK_THAT(gone["error"]["code"].get<std::string>(), ContainsSubstring("WORKDIR"));
    CHECK_THAT(gone["error"]["message"].get<std::string>(), ContainsSubstring(directory));
    CHECK(gone["stdout"]["text"] == "");
    CHECK(exists(home + "/build"));
    CHECK(results[2]["structuredContent"]["stdout"]["text"] == world.workspace() + "\n");
    CHECK(results[4]["structuredContent"]["stdout"]["text"] == directory + "\n");
    rmdir(directory.c_str());
  }
}

BACKEND_TEST("a working directory that the user may not enter is named") {
  const std::string closed = make_directory(world, world.workspace() + "/closed");
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  auto result = world.json("workspace-write", "pwd", {"--cwd", closed});
  INFO(result.dump());
  if (world.uid == 0) {
    CHECK(result["stdout"]["text"] == closed + "\n");
  } else {
    CHECK(result["outcome"] != "ok");
    CHECK(result["sandbox"]["ran"] == false);
    CHECK(result["sandbox"]["denied"] == false);
    CHECK_THAT(result["error"]["code"].get<std::string>(), ContainsSubstring("WORKDIR"));
    CHECK_THAT(result["error"]["message"].get<std::string>(), ContainsSubstring(closed));
  }
  rmdir(closed.c_str());
}

TEST_CASE("path: a host whose own directory is gone runs nothing elsewhere and says what to do") {
  World world("landlock", users().back());
  ProgramOptions options;
  if (geteuid() == 0) options.uid = world.uid;
  options.cwd = world.workspace();
  options.environment = {{"HOME", world.workspace()}};
  auto result = run_program({"bash", "-c", "mkdir gone; cd gone; rmdir ../gone; exec \"$@\"",
                             "bash", world.prefix + "/bin/stockade", "exec", "--json", "--mode",
                             "danger-full-access", "--", "touch " + world.workspace() + "/ran"},
                            options);
  CHECK(result.status == 125);
  CHECK_THAT(result.out, ContainsSubstring("working directory of this process") &&
                             ContainsSubstring("by absolute paths"));
  CHECK_FALSE(exists(world.workspace() + "/ran"));
}

BACKEND_TEST("a host whose own directory is gone works where it is told to") {
  ProgramOptions options;
  if (geteuid() == 0) options.uid = world.uid;
  options.cwd = world.workspace();
  for (const char* mode : {"workspace-write", "danger-full-access"}) {
    INFO(mode);
    auto result = run_program(
        {"bash", "-c", "mkdir gone; cd gone; rmdir ../gone; exec \"$@\"", "bash",
         world.prefix + "/bin/stockade", "exec", "--mode", mode, "--backend", world.backend,
         "--workspace", world.workspace(), "--cwd", world.workspace(), "--", "pwd"},
        options);
    INFO(result.err);
    CHECK(result.out == world.workspace() + "\n");
    CHECK(result.status == 0);
  }
}
