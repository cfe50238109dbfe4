// SPDX-License-Identifier: MIT
// What every end-to-end test works in: the installed executable, a user, a workspace and a
// directory outside it that the same user owns. So whatever is denied is denied by the sandbox: the
// control under danger-full-access succeeds.
#pragma once

#include <sys/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/scratch.hpp"

namespace stockade::test {

std::string installation();  // its prefix

// Root's tests run everything twice.
std::vector<uid_t> users();

class World {
 public:
  World(std::string backend, uid_t uid);

  const std::string backend;
  const uid_t uid;

  std::string workspace() const { return scratch_ / "workspace"; }
  std::string outside() const { return scratch_ / "outside"; }
  // A file of the user's with this content, outside the workspace.
  std::string outside_file(const std::string& name, const std::string& content) const;

  // `stockade exec` with these options before `--`, in the workspace.
  ProgramResult exec(const std::vector<std::string>& options, const std::string& command) const;
  // The same with --mode, --backend, --workspace and --json; checks that exactly one object came.
  nlohmann::json json(const std::string& mode, const std::string& command,
                      std::vector<std::string> options = {}) const;
  ProgramResult stockade(const std::vector<std::string>& arguments,
                         ProgramOptions options = {}) const;

  std::string prefix = installation();  // another copy, where a test breaks one

 private:
  Scratch scratch_;
};

void for_each_user(const std::string& backend, const std::function<void(const World&)>& test);

}  // namespace stockade::test

// One test a backend, each for every user.
#define BACKEND_TEST_(unique, sentence)                   \
  static void unique(const stockade::test::World& world); \
  TEST_CASE("namespace: " sentence) {                     \
    stockade::test::for_each_user("namespace", unique);   \
  }                                                       \
  TEST_CASE("bwrap: " sentence) {                         \
    stockade::test::for_each_user("bwrap", unique);       \
  }                                                       \
  TEST_CASE("landlock: " sentence) {                      \
    stockade::test::for_each_user("landlock", unique);    \
  }                                                       \
  static void unique(const stockade::test::World& world)
#define BACKEND_TEST_NAME_(line) backend_test_##line
#define BACKEND_TEST_NAME(line) BACKEND_TEST_NAME_(line)
#define BACKEND_TEST(sentence) BACKEND_TEST_(BACKEND_TEST_NAME(__LINE__), sentence)
