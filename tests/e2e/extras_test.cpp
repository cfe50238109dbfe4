// SPDX-License-Identifier: MIT
// What an operator adds to the modes: enforced, or refused, never ignored. Judged by the host's
// files.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/e2e/world.hpp"

using namespace stockade::test;

namespace {

bool enforces(const World& world) {
  return world.backend != "landlock";
}

std::vector<std::string> with(const World& world, const std::string& settings) {
  std::string config = world.outside_file(
      "config.json", R"({"plugins": [{"plugin": "sandbox", "config": {)" + settings +
                         R"(}}, {"plugin": "sandbox-local"}, {"plugin": "bash-sandbox"}]})");
  return {"--config", config};
}

void make(const World& world, const std::string& path, const std::string& content) {
  write_file(path, content);
  if (geteuid() == 0 && chown(path.c_str(), world.uid, world.uid) != 0)
    throw std::runtime_error("chown " + path);
}

void make_directory(const World& world, const std::string& path) {
  std::filesystem::create_directories(path);
  if (geteuid() == 0 && chown(path.c_str(), world.uid, world.uid) != 0)
    throw std::runtime_error("chown " + path);
}

void refused(const nlohmann::json& result) {
  INFO(result.dump());
  CHECK(result["outcome"] == "runner-failed");
  CHECK(result["error"]["code"] == "SANDBOX_UNAVAILABLE");
}

}  // namespace

BACKEND_TEST("a further root is written in workspace-write and not in read-only") {
  make_directory(world, world.outside() + "/more");
  auto options = with(world, R"("writableRoots": [")" + world.outside() + R"(/more"])");
  std::string write = "echo x > " + world.outside() + "/more/f";
  CHECK(world.json("read-only", write, options)["outcome"] == "denied");
  CHECK_FALSE(exists(world.outside() + "/more/f"));
  CHECK(world.json("workspace-write", write, options)["outcome"] == "ok");
  CHECK(read_file(world.outside() + "/more/f") == "x\n");
  CHECK(world.json("workspace-write", "echo x > " + world.outside() + "/g", options)["outcome"] ==
        "denied");
  auto bad = with(world, R"("writableRoots": ["/proc"])");
  CHECK(world.json("workspace-write", "true", bad)["error"]["code"] == "WORKSPACE_REFUSED");
}

BACKEND_TEST("further roots may have any name and are as many as can be kept") {
  std::string roots;
  std::string command;
  for (const char* name : {"a:b", "sp ace", "new\\nline", "quo'te"}) {
    roots += std::string(roots.empty() ? "" : ", ") + "\"" + world.outside() + "/" + name + "\"";
    const std::string path = nlohmann::json::parse("\"" + world.outside() + "/" + name + "\"");
    make_directory(world, path);
    command += "echo x > $'" +
               (*name == 'q' ? world.outside() + "/quo\\'te" : world.outside() + "/" + name) +
               "/f' && ";
  }
  for (int i = 0; i < 60; ++i) {
    make_directory(world, world.outside() + "/r" + std::to_string(i));
    roots += ", \"" + world.outside() + "/r" + std::to_string(i) + "\"";
  }
  auto result = world.json("workspace-write", command + "echo x > " + world.outside() + "/r59/f",
                           with(world, "\"writableRoots\": [" + roots + "]"));
  INFO(result.dump());
  CHECK(result["outcome"] == "ok");
  CHECK(read_file(world.outside() + "/a:b/f") == "x\n");
  CHECK(read_file(world.outside() + "/new\nline/f") == "x\n");
  CHECK(read_file(world.outside() + "/r59/f") == "x\n");

  auto many = world.json("workspace-write", "true",
                         with(world, "\"writableRoots\": [" + roots + ", \"/usr\"]"));
  CHECK(many["outcome"] == "runner-failed");
  CHECK_THAT(many["error"]["message"].get<std::string>(),
             ContainsSubstring("writableRoots has 65 paths"));
}

BACKEND_TEST("a protected path stays as it is and the work around it goes on") {
  std::string git = world.workspace() + "/.git";
  make_directory(world, git);
  make_directory(world, git + "/hooks");
  make(world, git + "/config", "before");
  make_directory(world, world.workspace() + "/elsewhere");
  auto options = with(world, R"("protectedPaths": [".git/hooks", ".git/config", ".absent"])");
  std::string attack =
      "echo x > .git/hooks/pre-commit; echo x > .git/config; rm .git/config; chmod 777 "
      ".git/config; "
      "mv .git/config .git/c; mv .git/hooks .git/h; mv .git g; rm -rf .git; mkdir -p .git/hooks; "
      "echo x > .git/hooks/pre-commit; ln -sfn ../elsewhere .git/hooks; exit 1";
  auto result = world.json("workspace-write", attack, options);
  if (!enforces(world)) return refused(result);
  CHECK(result["outcome"] == "denied");
  CHECK(read_file(git + "/config") == "before");
  CHECK(std::filesystem::is_empty(git + "/hooks"));
  CHECK_FALSE(std::filesystem::is_symlink(git + "/hooks"));
  CHECK_FALSE(exists(world.workspace() + "/.absent"));
  CHECK(world.json("workspace-write", "echo ok > .git/HEAD && mv .git/HEAD .git/H2",
                   options)["outcome"] == "ok");
  CHECK(exists(git + "/H2"));

  std::string control = world.workspace() + "/control.sh";
  make(world, control, "echo x > .git/hooks/pre-commit");
  CHECK(world.json("workspace-write", "sh control.sh")["outcome"] == "ok");
  CHECK(exists(git + "/hooks/pre-commit"));
}

BACKEND_TEST("a commit goes through while hooks and config are protected") {
  auto options = with(world, R"("protectedPaths": [".git/hooks", ".git/config"])");
  std::string identity = "-c user.name=n -c user.email=e@x ";
  CHECK(world.json("workspace-write", "git init -q . && echo x > f")["outcome"] == "ok");
  auto result = world.json(
      "workspace-write",
      "git add f && git " + identity + "commit -qm m && git log --oneline | wc -l", options);
  if (!enforces(world)) return refused(result);
  INFO(result.dump());
  CHECK(result["outcome"] == "ok");
  CHECK(result["stdout"]["text"] == "1\n");
}

BACKEND_TEST("a hidden path cannot be read in either mode") {
  make_directory(world, world.outside() + "/secrets");
  make(world, world.outside() + "/secrets/key", "s3cr3t");
  make(world, world.workspace() + "/.env", "s3cr3t");
  auto options = with(world, R"("hiddenPaths": [")" + world.outside() + R"(/secrets", ".env"])");
  std::string read =
      "cat .env " + world.outside() + "/secrets/key; ls -A " + world.outside() + "/secrets; true";
  for (const char* mode : {"read-only", "workspace-write"}) {
    auto result = world.json(mode, read, options);
    if (!enforces(world)) {
      refused(result);
      continue;
    }
    CHECK(result["outcome"] == "ok");
    CHECK(result["stdout"]["text"] == "");
    CHECK(world.json(mode, read)["stdout"]["text"].get<std::string>().find("s3cr3ts3cr3t") == 0);
  }
  CHECK(read_file(world.workspace() + "/.env") == "s3cr3t");
  auto all = with(world, R"("hiddenPaths": ["."])");
  CHECK(world.json("workspace-write", "true", all)["error"]["code"] == "EXTRAS_REFUSED");
}

BACKEND_TEST("without a network there is only a loopback of the call's own") {
  auto options = with(world, R"("network": false)");
  std::string count = "grep -c : /proc/net/dev";
  for (const char* mode : {"read-only", "workspace-write"}) {
    auto result = world.json(
        mode, count + "; (: < /dev/tcp/127.0.0.1/1) 2>&1 | grep -o refused | head -n 1", options);
    if (!enforces(world)) {
      refused(result);
      continue;
    }
    INFO(result.dump());
    CHECK(result["stdout"]["text"] == "1\nrefused\n");
  }
}
