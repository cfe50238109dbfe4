// SPDX-License-Identifier: MIT
#include "bash-sandbox/environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"

using namespace stockade;
using stockade::test::thrown_by;

namespace {

using Words = std::vector<std::string>;

bool has(const Words& block, const std::string& entry) {
  return std::find(block.begin(), block.end(), entry) != block.end();
}

bool names(const Words& block, const std::string& name) {
  return std::any_of(block.begin(), block.end(),
                     [&](const auto& entry) { return entry.starts_with(name + "="); });
}

}  // namespace

TEST_CASE("environment: a quiet terminal is the default") {
  CHECK(build_environment({}, {}) ==
        Words{"GIT_PAGER=cat", "NO_COLOR=1", "PAGER=cat", "TERM=dumb"});
  auto block = build_environment({"TERM=xterm", "PAGER=less", "GIT_PAGER=less", "NO_COLOR="}, {});
  CHECK(block == build_environment({}, {}));
}

TEST_CASE("environment: what the host is told to keep secret is dropped") {
  Words ambient{"X_API_KEY=1",  "x_token=1",    "MY_PASSWORD=1", "A_SECRET=1", "monkey=1",
                "STOCKADE_X=1", "stockade_x=1", "PATH=/bin",     "HOME=/h",    "MY_STOCKADE=1"};
  auto block = build_environment(ambient, {});
  for (const char* name :
       {"X_API_KEY", "x_token", "MY_PASSWORD", "A_SECRET", "monkey", "STOCKADE_X", "stockade_x"}) {
    CAPTURE(name);
    CHECK_FALSE(names(block, name));
  }
  CHECK(has(block, "PATH=/bin"));
  CHECK(has(block, "HOME=/h"));
  CHECK(has(block, "MY_STOCKADE=1"));
}

TEST_CASE("environment: what would run code before the command is dropped") {
  for (std::string name : {"BASH_ENV", "ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT",
                           "BASH_FUNC_ls%%", "SHELLOPTS", "BASHOPTS", "PS4"}) {
    CAPTURE(name);
    CHECK_FALSE(names(build_environment({name + "=x"}, {}), name));
  }
  for (std::string name : {"BASH_ENVX", "MY_ENV", "OLD_X", "PS1"}) {
    CAPTURE(name);
    CHECK(has(build_environment({name + "=x"}, {}), name + "=x"));
  }
}

TEST_CASE("environment: explicit entries win and may hold any name") {
  auto block = build_environment({"A=ambient"},
                                 {{"A", "mine"},
                                  {"TERM", "xterm"},
                                  {"EXPLICIT_PASSWORD", "p"},
                                  {"STOCKADE_SHELL", "s"},
                                  {"LD_LIBRARY_PATH", "/l"}},
                                 false);
  CHECK(has(block, "A=mine"));
  CHECK(has(block, "TERM=xterm"));
  CHECK(has(block, "EXPLICIT_PASSWORD=p"));
  CHECK(has(block, "STOCKADE_SHELL=s"));
  CHECK(has(block, "LD_LIBRARY_PATH=/l"));
  CHECK_FALSE(has(block, "A=ambient"));
  CHECK_FALSE(has(block, "TERM=dumb"));
}

TEST_CASE("environment: a value is kept byte for byte") {
  auto block = build_environment({"A=b=c", "N=l1\nl2", "E="}, {{"X", "=\n\xff"}});
  CHECK(has(block, "A=b=c"));
  CHECK(has(block, "N=l1\nl2"));
  CHECK(has(block, "E="));
  CHECK(has(block, "X==\n\xff"));
}

TEST_CASE("environment: an explicit entry that no block can hold is refused") {
  using Entries = std::map<std::string, std::string>;
  for (const auto& entries :
       {Entries{{"", "x"}}, Entries{{"A=B", "x"}}, Entries{{"=A", "x"}},
        Entries{{std::string("A\0B", 3), "x"}}, Entries{{"A", std::string("x\0y", 3)}}}) {
    auto thrown = thrown_by([&] { build_environment({}, entries); });
    CHECK(thrown.code == "ENVIRONMENT_INVALID");
    CHECK(thrown.operand == entries.begin()->first);
    CHECK_THAT(thrown.text, ContainsSubstring("neither may hold a NUL byte"));
  }
}

TEST_CASE("environment: ambient entries without a name are passed over") {
  CHECK(build_environment({"", "NOEQUALS", "=x"}, {}) == build_environment({}, {}));
}

TEST_CASE("environment: each name stands in the block once") {
  auto block = build_environment({"A=1", "A=2", "TERM=x"}, {{"A", "3"}});
  std::set<std::string> seen;
  for (const auto& entry : block) CHECK(seen.insert(entry.substr(0, entry.find('='))).second);
}

TEST_CASE("environment: the ambient one is that of this process and building changes nothing") {
  setenv("AMBIENT_PROBE", "here", 1);
  CHECK(has(ambient_environment(), "AMBIENT_PROBE=here"));
  auto before = ambient_environment();
  build_environment(before, {{"AMBIENT_PROBE", "changed"}});
  CHECK(ambient_environment() == before);
  unsetenv("AMBIENT_PROBE");
}

TEST_CASE("environment: what would run code in the runner is refused for a confined call") {
  for (const char* name : {"LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "ENV", "BASH_FUNC_ls%%"}) {
    CHECK_THROWS_WITH(build_environment({}, {{name, "x"}}, true), ContainsSubstring(name));
    CHECK_NOTHROW(build_environment({}, {{name, "x"}}, false));
  }
}
