// SPDX-License-Identifier: MIT
#include "sandbox-local/temporary.hpp"

#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "framework/library.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using stockade::test::exists;
using stockade::test::Scratch;
using stockade::test::thrown_by;
using stockade::test::write_file;

namespace {

const SandboxPolicy kPolicy{ConfinedSandboxMode::workspace_write, "/ws"};

std::string launcher() {
  return installation_directory() + "/stockade-launch";
}

std::size_t entries(const std::string& directory) {
  std::size_t count = 0;
  for (auto& entry : std::filesystem::directory_iterator(directory)) count += !entry.path().empty();
  return count;
}

bool becomes_empty(const std::string& directory) {
  for (int i = 0; i < 500 && entries(directory) > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return entries(directory) == 0;
}

mode_t permissions(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

// By a process of a user who may not do what root may.
template <typename Body>
void as_user(Body body) {
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    const bool user =
        geteuid() != 0 || (setgroups(0, nullptr) == 0 && setgid(1000) == 0 && setuid(1000) == 0);
    if (user) body();
    _exit(user ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  REQUIRE(status == 0);
}

// What a command leaves there that rm cannot take away.
void leave_closed_directory(const std::string& program, const std::string& parent) {
  as_user([&] {
    TemporaryArea area(program, parent);
    const auto directory = area.directory_for(kPolicy) + "/a";
    std::filesystem::create_directories(directory + "/b");
    chmod(directory.c_str(), 0);
  });
}

// A place of that user's, with the launcher where that user can execute it.
struct UserPlace {
  UserPlace() {
    std::filesystem::copy_file(launcher(), place / "launch");
    std::filesystem::create_directory(place / "parent");
    if (geteuid() == 0) REQUIRE(chown((place / "parent").c_str(), 1000, 1000) == 0);
  }
  Scratch place;
  const std::string program = place / "launch";
  const std::string parent = place / "parent";
};

}  // namespace

TEST_CASE("temporary: one directory a session and workspace, the same at every call") {
  Scratch parent;
  TemporaryArea area(launcher(), parent.path());
  CHECK(entries(parent.path()) == 0);
  auto first = area.directory_for(kPolicy);
  CHECK(area.directory_for(kPolicy) == first);
  SandboxPolicy other = kPolicy;
  other.session_id = "s1";
  auto second = area.directory_for(other);
  CHECK(second != first);
  other.workspace_root = "/ws2";
  CHECK(area.directory_for(other) != second);
  CHECK(entries(parent.path()) == 1);
}

TEST_CASE("temporary: nobody else gets in, and everybody inside may write") {
  Scratch parent;
  TemporaryArea area(launcher(), parent.path());
  auto directory = area.directory_for(kPolicy);
  CHECK(permissions(directory) == 01777);
  CHECK(permissions(std::filesystem::path(directory).parent_path()) == 0700);
}

TEST_CASE("temporary: it goes with what commands left in it") {
  Scratch parent;
  {
    TemporaryArea area(launcher(), parent.path());
    auto directory = area.directory_for(kPolicy);
    std::filesystem::create_directories(directory + "/a/b");
    write_file(directory + "/a/b/f", "x");
    chmod((directory + "/a").c_str(), 0);
  }
  CHECK(becomes_empty(parent.path()));
}

TEST_CASE("temporary: it goes although its owner may not enter what is in it") {
  UserPlace user;
  leave_closed_directory(user.program, user.parent);
  CHECK(becomes_empty(user.parent));
}

TEST_CASE("temporary: a link that is put in its place while it goes leads nowhere") {
  const bool confined = GENERATE(false, true);
  UserPlace user;
  const std::string victim = user.place / "victim";
  std::filesystem::create_directory(victim);
  write_file(victim + "/closed", "x", 0);
  if (geteuid() == 0)
    for (const auto& path : {victim, victim + "/closed"})
      REQUIRE(chown(path.c_str(), 1000, 1000) == 0);
  // In the launcher's place: puts the link there, and goes on as the launcher would, or as if there
  // were none.
  write_file(user.place / "swap",
             "#!/bin/sh\nmv \"$4\" \"$4.old\"\nln -s '" + victim + "' \"$4\"\n" +
                 (confined ? "'" + user.program + "' \"$@\"" : "shift 7; \"$@\"") + "\n: > '" +
                 user.parent + "/done'\n",
             0755);
  leave_closed_directory(user.place / "swap", user.parent);
  for (int i = 0; i < 500 && !exists(user.parent + "/done"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  REQUIRE(exists(user.parent + "/done"));
  CHECK((permissions(victim + "/closed") == 0) == confined);
}

TEST_CASE("temporary: an empty one goes at once") {
  Scratch parent;
  { TemporaryArea(launcher(), parent.path()).directory_for(kPolicy); }
  CHECK(entries(parent.path()) == 0);
}

TEST_CASE("temporary: a living host's area is not taken away by another") {
  Scratch parent;
  TemporaryArea first(launcher(), parent.path());
  auto directory = first.directory_for(kPolicy);
  TemporaryArea second(launcher(), parent.path());
  second.directory_for(kPolicy);
  CHECK(exists(directory));
  CHECK(entries(parent.path()) == 2);
}

TEST_CASE("temporary: a parent that cannot be written is named") {
  TemporaryArea area(launcher(), "/no-such-parent");
  auto thrown = thrown_by([&] { area.directory_for(kPolicy); });
  CHECK(thrown.code == "TEMPORARY_AREA");
  CHECK(thrown.operand == "/no-such-parent");
}
