// SPDX-License-Identifier: MIT
#include "sandbox-local/temporary.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

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

}  // namespace

TEST_CASE("temporary: one directory a session and workspace, the same at every call") {
  Scratch parent;
  TemporaryArea area(parent.path());
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
  TemporaryArea area(parent.path());
  auto directory = area.directory_for(kPolicy);
  CHECK(permissions(directory) == 01777);
  CHECK(permissions(std::filesystem::path(directory).parent_path()) == 0700);
}

TEST_CASE("temporary: it goes with what commands left in it") {
  Scratch parent;
  {
    TemporaryArea area(parent.path());
    auto directory = area.directory_for(kPolicy);
    std::filesystem::create_directories(directory + "/a/b");
    write_file(directory + "/a/b/f", "x");
    chmod((directory + "/a").c_str(), 0);
  }
  CHECK(becomes_empty(parent.path()));
}

TEST_CASE("temporary: an empty one goes at once") {
  Scratch parent;
  { TemporaryArea(parent.path()).directory_for(kPolicy); }
  CHECK(entries(parent.path()) == 0);
}

TEST_CASE("temporary: a living host's area is not taken away by another") {
  Scratch parent;
  TemporaryArea first(parent.path());
  auto directory = first.directory_for(kPolicy);
  TemporaryArea second(parent.path());
  second.directory_for(kPolicy);
  CHECK(exists(directory));
  CHECK(entries(parent.path()) == 2);
}

TEST_CASE("temporary: a parent that cannot be written is named") {
  TemporaryArea area("/no-such-parent");
  auto thrown = thrown_by([&] { area.directory_for(kPolicy); });
  CHECK(thrown.code == "TEMPORARY_AREA");
  CHECK(thrown.operand == "/no-such-parent");
}
