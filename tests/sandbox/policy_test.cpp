// SPDX-License-Identifier: MIT
#include "sandbox/policy.hpp"

#include <unistd.h>

#include <climits>
#include <filesystem>

#include "framework/config.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using stockade::test::Scratch;
using stockade::test::thrown_by;

TEST_CASE("policy: each mode has its name and is read back from it") {
  CHECK(to_string(SandboxMode::read_only) == "read-only");
  CHECK(to_string(SandboxMode::workspace_write) == "workspace-write");
  CHECK(to_string(SandboxMode::danger_full_access) == "danger-full-access");
  CHECK(to_string(ConfinedSandboxMode::read_only) == "read-only");
  CHECK(to_string(ConfinedSandboxMode::workspace_write) == "workspace-write");
  CHECK(to_string(SandboxEnforcement::full) == "full");
  CHECK(to_string(SandboxEnforcement::partial) == "partial");
  for (auto mode :
       {SandboxMode::read_only, SandboxMode::workspace_write, SandboxMode::danger_full_access})
    CHECK(parse_mode(to_string(mode)) == mode);
}

TEST_CASE("policy: what is no mode is not read as one") {
  for (const char* text : {"", "yolo", "read_only", "READ-ONLY", "read-only ", "danger", "0"})
    CHECK(parse_mode(text) == std::nullopt);
}

TEST_CASE("policy: only the confined modes reach a provider") {
  CHECK(to_confined(SandboxMode::read_only) == ConfinedSandboxMode::read_only);
  CHECK(to_confined(SandboxMode::workspace_write) == ConfinedSandboxMode::workspace_write);
  CHECK(to_confined(SandboxMode::danger_full_access) == std::nullopt);
  CHECK(to_mode(ConfinedSandboxMode::read_only) == SandboxMode::read_only);
  CHECK(to_mode(ConfinedSandboxMode::workspace_write) == SandboxMode::workspace_write);
}

TEST_CASE("policy: a value outside the modes is confined") {
  CHECK(to_confined(static_cast<SandboxMode>(7)) == ConfinedSandboxMode::read_only);
}

TEST_CASE("policy: without config the mode is read-only and the root the working directory") {
  char cwd[PATH_MAX];
  REQUIRE(getcwd(cwd, sizeof cwd));
  SandboxPolicyService service(SandboxPolicyConfig{});
  auto policy = service.resolve({});
  CHECK(service.default_mode() == SandboxMode::read_only);
  CHECK(policy.mode == SandboxMode::read_only);
  CHECK(policy.workspace_root == cwd);
}

TEST_CASE("policy: a root that is missing is normalised by its text") {
  SandboxPolicyService service({SandboxMode::workspace_write, "/no-such-ws/../no-such-ws/./sub"});
  CHECK(service.default_mode() == SandboxMode::workspace_write);
  CHECK(service.resolve({}).workspace_root == "/no-such-ws/sub");
}

TEST_CASE("policy: a config with an unknown mode or key is refused") {
  auto load = [](const char* text) {
    return thrown_by([&] { read_config<SandboxPolicyConfig>(parse_config(text, "t"), "t"); });
  };
  CHECK(load(R"({"mode": "workspace-write", "workspaceRoot": "/ws"})").code.empty());
  auto mode = load(R"({"mode": "yolo"})");
  CHECK(mode.code == "CONFIG_INVALID");
  CHECK(mode.operand == "$.mode");
  CHECK_THAT(mode.text, ContainsSubstring("danger-full-access"));
  CHECK(load(R"({"mode": "workspace_write"})").code == "CONFIG_INVALID");
  auto key = load(R"({"workspaceRot": "/ws"})");
  CHECK(key.code == "CONFIG_INVALID");
  CHECK_THAT(key.text, ContainsSubstring("did you mean \"workspaceRoot\""));
}

TEST_CASE("policy: without a session there is no session id") {
  SandboxPolicyService service({SandboxMode::workspace_write, "/fallback"});
  auto policy = service.resolve({});
  CHECK(policy.mode == SandboxMode::workspace_write);
  CHECK(policy.workspace_root == "/fallback");
  CHECK(policy.session_id == std::nullopt);
}

TEST_CASE("policy: each session has its own root and mode") {
  SandboxPolicyService service({SandboxMode::workspace_write, "/fallback"});
  Session first{"id1", "/projects/first", {}};
  Session second{"id2", "/projects/second", {}};
  switch_mode(second, SandboxMode::read_only);

  auto one = service.resolve({&first, {}});
  auto two = service.resolve({&second, {}});
  auto none = service.resolve({});
  CHECK(one.mode == SandboxMode::workspace_write);
  CHECK(one.workspace_root == "/projects/first");
  CHECK(one.session_id == "id1");
  CHECK(two.mode == SandboxMode::read_only);
  CHECK(two.workspace_root == "/projects/second");
  CHECK(two.session_id == "id2");
  CHECK(none.mode == SandboxMode::workspace_write);
  CHECK(none.workspace_root == "/fallback");
}

TEST_CASE("policy: an approved mode wins over the session and keeps its root") {
  SandboxPolicyService service({SandboxMode::workspace_write, "/fallback"});
  Session session{"id", "/projects/approved", {}};
  switch_mode(session, SandboxMode::read_only);
  auto policy = service.resolve({&session, SandboxMode::danger_full_access});
  CHECK(policy.mode == SandboxMode::danger_full_access);
  CHECK(policy.workspace_root == "/projects/approved");
  CHECK(policy.session_id == "id");
}

TEST_CASE("policy: a session without a directory has the configured root") {
  SandboxPolicyService service({SandboxMode::read_only, "/fallback"});
  Session session{"id", std::nullopt, {}};
  auto policy = service.resolve({&session, {}});
  CHECK(policy.workspace_root == "/fallback");
  CHECK(policy.session_id == "id");
}

TEST_CASE("policy: a session that is reached by a link has the real root") {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "real");
  std::filesystem::create_symlink(scratch / "real", scratch / "link");
  SandboxPolicyService service({SandboxMode::read_only, scratch / "link"});
  CHECK(service.resolve({}).workspace_root == scratch / "real");
  Session session{"id", scratch / "link", {}};
  CHECK(service.resolve({&session, {}}).workspace_root == scratch / "real");
}

TEST_CASE("policy: a session with a forged mode resolves to nothing") {
  SandboxPolicyService service({SandboxMode::read_only, "/fallback"});
  Session session{"id", std::nullopt, {{"sandbox/mode", "host-root"}}};
  CHECK(thrown_by([&] { service.resolve({&session, {}}); }).code == "SESSION_INVALID");
}
