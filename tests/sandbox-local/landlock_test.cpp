// SPDX-License-Identifier: MIT
#include "sandbox-local/landlock.hpp"

#include "tests/support/catch.hpp"

using namespace stockade;

namespace {

using Words = std::vector<std::string>;

const SandboxPolicy kReadOnly{ConfinedSandboxMode::read_only, "/ws"};
const SandboxPolicy kWrite{ConfinedSandboxMode::workspace_write, "/ws"};
const BackendHost kHost{"/lib/stockade-launch", "", {}, false, 7, false};

// With what the other tests do not ask about.
ConfinedArgv confine_landlock(const BackendHost& host, const Words& argv,
                              const SandboxPolicy& policy, const std::string& directory = "/") {
  return confine_landlock(host, ConfineRequest{argv, policy, directory, "8:1:42", "/area/1"});
}

}  // namespace

TEST_CASE("landlock: the rules are a contract word for word") {
  CHECK(landlock_rules(kHost, kReadOnly) == Words{"--ro", "/", "--rw", "/dev/null"});
  CHECK(landlock_rules(kHost, kWrite) ==
        Words{"--ro", "/", "--rw", "/dev/null", "--rw", "/tmp", "--rw", "/ws"});
}

TEST_CASE("landlock: the argv is the launcher and its rules and then the command") {
  auto confined = confine_landlock(kHost, {"bash", "-c", "--", "echo \"a b\""}, kWrite);
  CHECK(confined.argv == Words{"/lib/stockade-launch", "--status-fd", "3", "--ro", "/", "--rw",
                               "/dev/null", "--rw", "/tmp", "--rw", "/ws", "--identity", "8:1:42",
                               "--", "bash", "-c", "--", "echo \"a b\""});
  CHECK(confined.backend == "landlock");
  CHECK(confined.status_channel);
}

TEST_CASE("landlock: the areas given away beside the workspace are the host's") {
  BackendHost host = kHost;
  host.temporary_areas = {"/private/tmp", "/var/x"};
  CHECK(landlock_rules(host, kWrite) == Words{"--ro", "/", "--rw", "/dev/null", "--rw",
                                              "/private/tmp", "--rw", "/var/x", "--rw", "/ws"});
  CHECK(landlock_rules(host, kReadOnly) == Words{"--ro", "/", "--rw", "/dev/null"});
}

TEST_CASE("landlock: enforcement is full from the ABI on that governs truncate") {
  for (int abi : {1, 2, 3, 7, 100}) {
    CAPTURE(abi);
    BackendHost host = kHost;
    host.landlock_abi = abi;
    auto confined = confine_landlock(host, {"true"}, kReadOnly);
    CHECK((confined.enforcement == SandboxEnforcement::full) == (abi >= 3));
    CHECK(confined.enforcement_reasons.empty() == (abi >= 3));
    if (abi < 3) CHECK_THAT(confined.enforcement_reasons.at(0), ContainsSubstring("truncate"));
  }
}

TEST_CASE("landlock: its dialect and its own errors are told") {
  auto confined = confine_landlock(kHost, {"true"}, kReadOnly);
  CHECK(confined.denial_signatures ==
        Words{"permission denied", "read-only file system", "cross-device link"});
  REQUIRE(confined.runner_failure_rules.size() == 1);
  const auto& rule = confined.runner_failure_rules[0];
  CHECK(rule.allowed_exit_codes == std::vector<int>{125});
  CHECK(rule.fatal_signatures == Words{"landlock-run: "});
  CHECK(rule.informational_lines ==
        Words{"landlock-run: partial enforcement (older Landlock ABI)"});
}
