// SPDX-License-Identifier: MIT
#include "bash-sandbox/shell_environment.hpp"

#include <unistd.h>

#include <cstdlib>

#include "tests/bash-sandbox/rig.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"

using namespace stockade;
using stockade::test::Rig;
using stockade::test::Thrown;
using stockade::test::thrown_by;

namespace {

using Values = std::map<std::string, std::string>;

ShellContributor contributor(const std::string& name, std::vector<ShellVariable> variables,
                             Values values = {}) {
  return {name, std::move(variables), [values](const ShellEnvironmentRequest&) { return values; }};
}

}  // namespace

TEST_CASE("shell environment: every command has a home and a mark and a session has its id") {
  char cwd[4096];
  REQUIRE(getcwd(cwd, sizeof cwd));
  ShellEnvironmentRegistry registry("./h");
  Values plain{{"STOCKADE_HOME", std::string(cwd) + "/h"}, {"STOCKADE_SHELL", "1"}};
  CHECK(registry.collect({}) == plain);
  Values with_session = plain;
  with_session["STOCKADE_SESSION_ID"] = "s-1";
  CHECK(registry.collect({"s-1"}) == with_session);
}

TEST_CASE("shell environment: without a configured home it is the host's own or below the user's") {
  const char* home = getenv("HOME");
  std::string before = home ? home : "";
  setenv("STOCKADE_HOME", "/srv/own", 1);
  CHECK(ShellEnvironmentRegistry("").collect({})["STOCKADE_HOME"] == "/srv/own");
  unsetenv("STOCKADE_HOME");
  setenv("HOME", "/home/somebody", 1);
  CHECK(ShellEnvironmentRegistry("").collect({})["STOCKADE_HOME"] == "/home/somebody/.stockade");
  if (home)
    setenv("HOME", before.c_str(), 1);
  else
    unsetenv("HOME");
  CHECK(getenv("STOCKADE_HOME") == nullptr);
  CHECK(getenv("STOCKADE_SHELL") == nullptr);
}

TEST_CASE("shell environment: a registration that is wrong is refused as a whole") {
  ShellEnvironmentRegistry registry("/h");
  registry.add(contributor("first", {{"STOCKADE_OWNED", "what it is"}}));
  struct Row {
    ShellContributor contributor;
    std::string text;
  };
  const ShellVariable good{"STOCKADE_GOOD", "a good one"};
  for (const auto& row :
       {Row{contributor("", {good}), "bash env contributor name must be non-empty"},
        Row{contributor(" ", {good}), "bash env contributor name must be non-empty"},
        Row{contributor("first", {good}), "bash env contributor \"first\" is already registered"},
        Row{contributor("x", {good, {"stockade_invalid", "d"}}),
            "bash env contributor \"x\" declared invalid key \"stockade_invalid\""},
        Row{contributor("x", {good, {"PATH", "d"}}),
            "bash env contributor \"x\" declared invalid key \"PATH\""},
        Row{contributor("x", {good, {"STOCKADE_1", "d"}}),
            "bash env contributor \"x\" declared invalid key \"STOCKADE_1\""},
        Row{contributor("x", {good, {"STOCKADE_", "d"}}),
            "bash env contributor \"x\" declared invalid key \"STOCKADE_\""},
        Row{contributor("x", {good, {"STOCKADE_HOME", "d"}}),
            "bash env contributor \"x\" cannot own reserved key \"STOCKADE_HOME\""},
        Row{contributor("x", {good, {"STOCKADE_K", " "}}),
            "bash env contributor \"x\" must describe \"STOCKADE_K\""},
        Row{contributor("x", {good, good}),
            "bash env contributor \"x\" declared key \"STOCKADE_GOOD\" twice"},
        Row{contributor("second", {good, {"STOCKADE_OWNED", "d"}}),
            "bash env key \"STOCKADE_OWNED\" is already owned by contributor \"first\"; "
            "contributor \"second\" cannot also own it"}}) {
    Thrown thrown = thrown_by([&] { registry.add(row.contributor); });
    CHECK(thrown.code == "SHELL_ENVIRONMENT_INVALID");
    CHECK(thrown.text == row.text);
  }
  // Nothing of the refused ones is left.
  registry.add(contributor("x", {good}));
  CHECK(registry.variables().size() == 5);
}

TEST_CASE("shell environment: a registration leaves once and takes nothing else with it") {
  ShellEnvironmentRegistry registry("/h");
  auto undo = registry.add(contributor("a", {{"STOCKADE_A", "d"}}, {{"STOCKADE_A", "1"}}));
  CHECK(registry.collect({})["STOCKADE_A"] == "1");
  auto copy = undo;
  undo();
  CHECK(registry.collect({}).count("STOCKADE_A") == 0);
  auto again = registry.add(contributor("a", {{"STOCKADE_A", "d"}}, {{"STOCKADE_A", "2"}}));
  copy();
  CHECK(registry.collect({})["STOCKADE_A"] == "2");
}

TEST_CASE("shell environment: a contributor that breaks its declaration is named") {
  ShellEnvironmentRegistry registry("/h");
  auto undo = registry.add(contributor("X", {{"STOCKADE_A", "d"}}, {{"STOCKADE_K", "1"}}));
  CHECK(thrown_by([&] { registry.collect({}); }).text ==
        "bash env contributor \"X\" returned undeclared key \"STOCKADE_K\"");
  undo();
  registry.add(contributor("X", {{"STOCKADE_A", "d"}}, {{"STOCKADE_A", std::string("a\0b", 3)}}));
  CHECK(thrown_by([&] { registry.collect({}); }).text ==
        "bash env contributor \"X\" returned a NUL byte in the value for \"STOCKADE_A\"");
}

TEST_CASE("shell environment: a command sees it and nothing of a request can forge it") {
  setenv("STOCKADE_LEAK", "x", 1);
  Rig rig({.cwd = "", .home = "/srv/home"});
  rig.shell->environment()->add(contributor("c", {{"STOCKADE_C", "d"}}, {{"STOCKADE_C", "mine"}}));
  BashRequest request{.command = "env | grep -i ^stockade | sort; cat"};
  request.input = "piped";
  request.environment = {{"STOCKADE_C", "forged"}, {"STOCKADE_SHELL", "forged"}, {"SEAM", "x"}};
  request.policy =
      SandboxExecutionPolicy{SandboxMode::danger_full_access, "/", std::string("session-7")};
  auto result = rig.run(request);
  unsetenv("STOCKADE_LEAK");
  CHECK(result.out.bytes ==
        "STOCKADE_C=mine\nSTOCKADE_HOME=/srv/home\nSTOCKADE_SESSION_ID=session-7\n"
        "STOCKADE_SHELL=1\npiped");
}

TEST_CASE("shell environment: a contributor that fails keeps the command from running") {
  Rig rig;
  rig.shell->environment()->add(contributor("c", {{"STOCKADE_C", "d"}}, {{"STOCKADE_D", "x"}}));
  CHECK(thrown_by([&] { rig.bash("true"); }).code == "SHELL_ENVIRONMENT_INVALID");
  CHECK(rig.sandbox->calls == 0);
}
