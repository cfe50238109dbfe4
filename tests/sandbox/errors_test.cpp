// SPDX-License-Identifier: MIT
#include "sandbox/errors.hpp"

#include "tests/support/catch.hpp"

using namespace stockade;

TEST_CASE("errors: the unavailable error has its code and names the mode") {
  SandboxUnavailableError error(ConfinedSandboxMode::workspace_write);
  CHECK(error.code() == "SANDBOX_UNAVAILABLE");
  std::string text = error.what();
  CHECK(
      text.starts_with("sandbox mode \"workspace-write\" is requested but no sandbox backend is "
                       "usable on this host; "));
  CHECK_THAT(text, ContainsSubstring("the command was not run"));
  CHECK(text.find("Runner failure") == std::string::npos);
}

TEST_CASE("errors: a detail of the unavailable error stands at its end") {
  std::string plain = sandbox_unavailable_message(ConfinedSandboxMode::read_only);
  SandboxUnavailableError error(ConfinedSandboxMode::read_only, "bwrap: no");
  CHECK(error.what() == plain + " Runner failure: bwrap: no");
  CHECK_THAT(plain, ContainsSubstring("\"read-only\""));
}

TEST_CASE("errors: the unavailable error is caught as an Error") {
  bool caught = false;
  try {
    throw SandboxUnavailableError(ConfinedSandboxMode::read_only);
  } catch (const Error& error) {
    caught = error.code() == kSandboxUnavailable;
  }
  CHECK(caught);
}

TEST_CASE("errors: the denial marker names the mode") {
  CHECK(denial_marker(SandboxMode::read_only) ==
        "[sandbox: file access denied under read-only mode]");
  CHECK(denial_marker(SandboxMode::workspace_write) ==
        "[sandbox: file access denied under workspace-write mode]");
}
