// SPDX-License-Identifier: MIT
#include "sandbox/session.hpp"

#include "sandbox/policy.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"

using namespace stockade;
using stockade::test::thrown_by;

TEST_CASE("session: a switch appends exactly one event") {
  Session session{"id", "/ws", {{"message", ""}}};
  switch_mode(session, SandboxMode::workspace_write);
  REQUIRE(session.events.size() == 2);
  CHECK(session.events[1].type == "sandbox/mode");
  CHECK(session.events[1].mode == "workspace-write");
}

TEST_CASE("session: a switch to the same mode is an event too") {
  Session session{"id", std::nullopt, {}};
  switch_mode(session, SandboxMode::read_only);
  switch_mode(session, SandboxMode::read_only);
  CHECK(session.events.size() == 2);
}

TEST_CASE("session: without an event there is no mode") {
  CHECK(session_mode(Session{"id", std::nullopt, {}}) == std::nullopt);
  CHECK(session_mode(Session{"id", std::nullopt, {{"other", "read-only"}}}) == std::nullopt);
}

TEST_CASE("session: the last mode event counts and others do not") {
  Session session{"id", std::nullopt, {}};
  switch_mode(session, SandboxMode::danger_full_access);
  switch_mode(session, SandboxMode::workspace_write);
  session.events.push_back({"other", "read-only"});
  CHECK(session_mode(session) == SandboxMode::workspace_write);
}

TEST_CASE("session: one rebuilt from its log has the same mode") {
  Session session{"id", "/ws", {}};
  switch_mode(session, SandboxMode::workspace_write);
  switch_mode(session, SandboxMode::read_only);
  Session rebuilt{"id", "/ws", {}};
  for (const auto& event : session.events) rebuilt.events.push_back({event.type, event.mode});
  CHECK(session_mode(rebuilt) == SandboxMode::read_only);
}

TEST_CASE("session: a forged mode is refused wherever it stands") {
  Session session{"id-7", std::nullopt, {{"sandbox/mode", "host-root"}}};
  auto thrown = thrown_by([&] { session_mode(session); });
  CHECK(thrown.code == "SESSION_INVALID");
  CHECK(thrown.text == "sandbox/mode carries unknown mode \"host-root\"");
  CHECK(thrown.operand == "id-7");

  switch_mode(session, SandboxMode::read_only);
  CHECK(thrown_by([&] { session_mode(session); }).code == "SESSION_INVALID");
}
