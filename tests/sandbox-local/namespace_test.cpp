// SPDX-License-Identifier: MIT
#include "sandbox-local/namespace.hpp"

#include "tests/support/catch.hpp"

using namespace stockade;

namespace {

using Words = std::vector<std::string>;

const SandboxPolicy kReadOnly{ConfinedSandboxMode::read_only, "/ws"};
const SandboxPolicy kWrite{ConfinedSandboxMode::workspace_write, "/ws"};
const BackendHost kHost{"/lib/stockade-launch", "", {}, false, 7, false};

}  // namespace

TEST_CASE("namespace: read-only gives no path away") {
  auto confined = confine_namespace(
      kHost, {{"bash", "-c", "--", "echo 'a b'"}, kReadOnly, "/home/me", "8:1:42", "/area/1"});
  CHECK(confined.argv == Words{"/lib/stockade-launch", "--namespace", "--status-fd", "3", "--chdir",
                               "/home/me", "--", "bash", "-c", "--", "echo 'a b'"});
  CHECK(confined.backend == "namespace");
  CHECK(confined.status_channel);
  CHECK(confined.block_term);
}

TEST_CASE("namespace: workspace-write names the workspace, what it was, and the session's tmp") {
  auto confined = confine_namespace(kHost, {{"true"}, kWrite, "/ws/sub", "8:1:42", "/area/1"});
  CHECK(confined.argv == Words{"/lib/stockade-launch", "--namespace", "--status-fd", "3", "--tmp",
                               "/area/1", "--rw", "/ws", "--identity", "8:1:42", "--chdir",
                               "/ws/sub", "--", "true"});
  auto within = confine_namespace(kHost, {{"true"}, kWrite, "/ws", "8:1:42", ""});
  CHECK(within.argv[4] == "--rw");
}

TEST_CASE("namespace: enforcement is full where Landlock is a second wall") {
  for (bool root : {false, true})
    for (int abi : {0, 2, 3, 7}) {
      BackendHost host = kHost;
      host.root = root;
      host.landlock_abi = abi;
      host.shared_mounts = true;  // private inside, whatever the host's are
      auto confined = confine_namespace(host, {{"true"}, kReadOnly, "/", "", ""});
      CHECK((confined.enforcement == SandboxEnforcement::full) == (abi >= 3));
      CHECK(confined.enforcement_reasons.empty() == (abi >= 3));
    }
}

TEST_CASE("namespace: its dialect and its own errors are told") {
  auto confined = confine_namespace(kHost, {{"true"}, kReadOnly, "/", "", ""});
  CHECK(confined.denial_signatures == Words{"read-only file system", "cross-device link"});
  REQUIRE(confined.runner_failure_rules.size() == 1);
  CHECK(confined.runner_failure_rules[0].allowed_exit_codes == std::vector<int>{125});
  CHECK(confined.runner_failure_rules[0].fatal_signatures == Words{"landlock-run: "});
}
