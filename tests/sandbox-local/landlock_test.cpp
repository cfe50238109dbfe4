// SPDX-License-Identifier: MIT
#include "sandbox-local/landlock.hpp"

#include "tests/support/catch.hpp"

using namespace stockade;

namespace {

using Words = std::vector<std::string>;

const SandboxPolicy kReadOnly{ConfinedSandboxMode::read_only, "/ws"};
const SandboxPolicy kWrite{ConfinedSandboxMode::workspace_write, "/ws"};
const BackendHost kHost{"/lib/stockade-launch", "", {}, false, 7, false};

}  // namespace

TEST_CASE("landlock: the rules are a contract word for word") {
  CHECK(landlock_rules(kReadOnly) == Words{"--ro", "/", "--rw", "/dev/null"});
  CHECK(landlock_rules(kWrite) ==
        Words{"--ro", "/", "--rw", "/dev/null", "--rw", "/tmp", "--rw", "/ws"});
}

TEST_CASE("landlock: the argv is the launcher and its rules and then the command") {
  auto confined = confine_landlock(kHost, {"bash", "-c", "--", "echo \"a b\""}, kWrite);
  CHECK(confined.argv == Words{"/lib/stockade-launch", "--status-fd", "3", "--ro", "/", "--rw",
                               "/dev/null", "--rw", "/tmp", "--rw", "/ws", "--", "bash", "-c", "--",
                               "echo \"a b\""});
  CHECK(confined.backend == "landlock");
  CHECK(confined.status_channel);
}

TEST_CASE("landlock: enforcement is never full and the reasons say why") {
  for (int abi : {1, 3, 7, 100}) {
    BackendHost host = kHost;
    host.landlock_abi = abi;
    auto confined = confine_landlock(host, {"true"}, kReadOnly);
    CHECK(confined.enforcement == SandboxEnforcement::partial);
    REQUIRE(confined.enforcement_reasons.size() == 1);
    CHECK_THAT(confined.enforcement_reasons[0], ContainsSubstring("metadata"));
  }
  auto write = confine_landlock(kHost, {"true"}, kWrite);
  REQUIRE(write.enforcement_reasons.size() == 2);
  CHECK_THAT(write.enforcement_reasons[1], ContainsSubstring("/tmp"));
}

TEST_CASE("landlock: its dialect and its own errors are told") {
  auto confined = confine_landlock(kHost, {"true"}, kReadOnly);
  CHECK(confined.denial_signatures == Words{"permission denied"});
  REQUIRE(confined.runner_failure_rules.size() == 1);
  const auto& rule = confined.runner_failure_rules[0];
  CHECK(rule.allowed_exit_codes == std::vector<int>{125});
  CHECK(rule.fatal_signatures == Words{"landlock-run: "});
  CHECK(rule.informational_lines ==
        Words{"landlock-run: partial enforcement (older Landlock ABI)"});
}
