// SPDX-License-Identifier: MIT
#include "sandbox-local/bwrap.hpp"

#include <algorithm>

#include "tests/support/catch.hpp"

using namespace stockade;

namespace {

using Words = std::vector<std::string>;

const SandboxPolicy kReadOnly{ConfinedSandboxMode::read_only, "/ws"};
const SandboxPolicy kWrite{ConfinedSandboxMode::workspace_write, "/ws"};
const BackendHost kUser{"/lib/stockade-launch", "/usr/bin/bwrap", {}, false, 7, false};
const BackendHost kRoot{"/lib/stockade-launch", "/usr/bin/bwrap", {}, true, 7, false};

// With what the other tests do not ask about.
ConfinedArgv confine_bwrap(const BackendHost& host, const Words& argv, const SandboxPolicy& policy,
                           const std::string& directory) {
  return confine_bwrap(host,
                       ConfineRequest{argv, policy, directory, "8:1:42", "/area/1", "8:1:43"});
}

// Where `part` begins in `words`, or -1.
std::ptrdiff_t position(const Words& words, const Words& part) {
  auto found = std::search(words.begin(), words.end(), part.begin(), part.end());
  return found == words.end() ? -1 : found - words.begin();
}

bool has(const Words& words, const Words& part) {
  return position(words, part) >= 0;
}

}  // namespace

TEST_CASE("bwrap: the plain profile is a contract word for word") {
  CHECK(plain_bwrap_profile(kReadOnly) == Words{"--ro-bind", "/", "/", "--dev", "/dev",
                                                "--unshare-pid", "--proc", "/proc",
                                                "--die-with-parent"});
  CHECK(plain_bwrap_profile(kWrite) ==
        Words{"--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc",
              "--die-with-parent", "--tmpfs", "/tmp", "--bind", "/ws", "/ws"});
}

TEST_CASE("bwrap: the whole read-only argv of an ordinary user") {
  auto confined = confine_bwrap(kUser, {"bash", "-c", "--", "echo 'a b'"}, kReadOnly, "/home/me");
  CHECK(confined.argv == Words{"/usr/bin/bwrap",
                               "--ro-bind",
                               "/",
                               "/",
                               "--dev",
                               "/dev",
                               "--unshare-pid",
                               "--proc",
                               "/proc",
                               "--unshare-ipc",
                               "--die-with-parent",
                               "--cap-drop",
                               "ALL",
                               "--remount-ro",
                               "/dev",
                               "--chdir",
                               "/home/me",
                               "--",
                               "/lib/stockade-launch",
                               "--stub",
                               "--status-fd",
                               "3",
                               "--ro",
                               "/",
                               "--rw",
                               "/dev/null",
                               "--rw",
                               "/dev/zero",
                               "--rw",
                               "/dev/full",
                               "--rw",
                               "/dev/random",
                               "--rw",
                               "/dev/urandom",
                               "--rw",
                               "/dev/tty",
                               "--rw",
                               "/dev/ptmx",
                               "--rw",
                               "/dev/pts",
                               "--",
                               "bash",
                               "-c",
                               "--",
                               "echo 'a b'"});
}

TEST_CASE("bwrap: read-only gives no path away") {
  for (const auto& host : {kUser, kRoot}) {
    auto argv = confine_bwrap(host, {"true"}, kReadOnly, "/").argv;
    CHECK_FALSE(has(argv, {"--bind"}));
    CHECK_FALSE(has(argv, {"--dev-bind"}));
    CHECK_FALSE(has(argv, {"--tmpfs"}));
    CHECK_FALSE(has(argv, {"--rw", "/tmp"}));
    CHECK_FALSE(has(argv, {"--rw", "/ws"}));
    CHECK_FALSE(has(argv, {"/ws"}));
    CHECK_FALSE(has(argv, {"/area/1"}));
    CHECK_FALSE(has(argv, {"--identity"}));
  }
}

TEST_CASE("bwrap: workspace-write adds the workspace after the private tmp") {
  auto argv = confine_bwrap(kUser, {"true"}, kWrite, "/ws").argv;
  auto tmp = position(argv, {"--bind", "/area/1", "/tmp"});
  auto bind = position(argv, {"--bind", "/ws", "/ws"});
  REQUIRE(tmp > 0);
  CHECK(bind > tmp);
  CHECK(std::count(argv.begin(), argv.end(), "--bind") == 2);
  // What is mounted below /dev has to be there before /dev is closed.
  auto shm = position(argv, {"--tmpfs", "/dev/shm"});
  REQUIRE(shm > 0);
  CHECK(position(argv, {"--remount-ro", "/dev"}) > shm);
  auto launcher = position(argv, {"/lib/stockade-launch"});
  for (const char* path : {"/dev/shm", "/tmp", "/ws"})
    CHECK(position(argv, {"--rw", path}) > launcher);
  // The last step refuses another directory than the one that was checked.
  CHECK(has(argv, {"--rw", "/tmp", "--identity", "8:1:43"}));
  CHECK(has(argv, {"--rw", "/ws", "--identity", "8:1:42", "--", "true"}));
}

TEST_CASE("bwrap: root gets back only what writing a workspace needs") {
  auto argv = confine_bwrap(kRoot, {"true"}, kWrite, "/ws").argv;
  auto drop = position(argv, {"--cap-drop", "ALL"});
  REQUIRE(drop > 0);
  Words added;
  for (std::size_t i = 0; i + 1 < argv.size(); ++i)
    if (argv[i] == "--cap-add") {
      CHECK(static_cast<std::ptrdiff_t>(i) > drop);
      added.push_back(argv[i + 1]);
    }
  CHECK(added == Words{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID"});
  CHECK(position(argv, {"--remount-ro", "/proc"}) > position(argv, {"--proc", "/proc"}));

  auto user = confine_bwrap(kUser, {"true"}, kWrite, "/ws").argv;
  CHECK(has(user, {"--cap-drop", "ALL"}));
  CHECK_FALSE(has(user, {"--cap-add"}));
}

TEST_CASE("bwrap: the working directory is always named and the command comes last") {
  Words command{"bash", "-c", "--", "--chdir / -- \"x\""};
  auto argv = confine_bwrap(kUser, command, kWrite, "/ws/sub dir").argv;
  CHECK(has(argv, {"--chdir", "/ws/sub dir", "--", "/lib/stockade-launch", "--stub", "--status-fd",
                   "3"}));
  REQUIRE(argv.size() > command.size() + 1);
  CHECK(Words(argv.end() - static_cast<std::ptrdiff_t>(command.size()), argv.end()) == command);
  CHECK(argv[argv.size() - command.size() - 1] == "--");
}

TEST_CASE("bwrap: a workspace whose path looks like an option stays one word") {
  SandboxPolicy odd{ConfinedSandboxMode::workspace_write, "/w s/--bind\n\"$(x)\":y"};
  auto argv = confine_bwrap(kUser, {"true"}, odd, "/").argv;
  CHECK(has(argv, {"--bind", odd.workspace_root, odd.workspace_root}));
  CHECK(has(argv, {"--rw", odd.workspace_root}));
}

TEST_CASE("bwrap: enforcement is full and each gap of a host makes it partial") {
  auto facts = [](BackendHost host) { return confine_bwrap(host, {"true"}, kReadOnly, "/"); };
  auto full = facts(kUser);
  CHECK(full.enforcement == SandboxEnforcement::full);
  CHECK(full.enforcement_reasons.empty());

  BackendHost no_landlock = kUser;
  no_landlock.landlock_abi = 0;
  BackendHost shared = kUser;
  shared.shared_mounts = true;
  for (const auto& host : {kRoot, no_landlock, shared}) {
    auto partial = facts(host);
    CHECK(partial.enforcement == SandboxEnforcement::partial);
    CHECK(partial.enforcement_reasons.size() == 1);
  }
  BackendHost all = kRoot;
  all.landlock_abi = 0;
  all.shared_mounts = true;
  CHECK(facts(all).enforcement_reasons.size() == 3);
}

TEST_CASE("bwrap: its dialect and its own errors are told") {
  auto confined = confine_bwrap(kUser, {"true"}, kReadOnly, "/");
  CHECK(confined.backend == "bwrap");
  CHECK(confined.denial_signatures == Words{"read-only file system", "cross-device link"});
  REQUIRE(confined.runner_failure_rules.size() == 1);
  const auto& rule = confined.runner_failure_rules[0];
  CHECK(rule.fatal_signatures == Words{"bwrap: "});
  CHECK_FALSE(rule.allowed_exit_codes);
  CHECK(rule.informational_lines.empty());
  CHECK(confined.status_channel);
  CHECK(confined.block_term);
}

TEST_CASE("backend: a private tmp hides what is below tmp and outside the workspace") {
  SandboxPolicy below{ConfinedSandboxMode::workspace_write, "/tmp/ws"};
  CHECK(hidden_by_private_tmp(kWrite, "/tmp/other"));
  CHECK(hidden_by_private_tmp(below, "/tmp/other"));
  CHECK(hidden_by_private_tmp(below, "/tmp/ws2"));
  CHECK_FALSE(hidden_by_private_tmp(below, "/tmp/ws"));
  CHECK_FALSE(hidden_by_private_tmp(below, "/tmp/ws/sub"));
  CHECK_FALSE(hidden_by_private_tmp(kWrite, "/tmp"));
  CHECK_FALSE(hidden_by_private_tmp(kWrite, "/tmpx/other"));
  CHECK_FALSE(hidden_by_private_tmp(kWrite, "/home"));
  CHECK_FALSE(hidden_by_private_tmp(kReadOnly, "/tmp/other"));
}
