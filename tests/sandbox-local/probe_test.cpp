// SPDX-License-Identifier: MIT
// With real launchers where the host has them, and with scripts in the place of bwrap.
#include "sandbox-local/probe.hpp"

#include <unistd.h>

#include "sandbox-local/bwrap.hpp"
#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using namespace std::chrono_literals;
using stockade::test::await_task;
using stockade::test::exists;
using stockade::test::read_file;
using stockade::test::Scratch;
using stockade::test::write_file;

namespace {

ProbeVerdict probe(Backend backend, const BackendHost& host,
                   std::chrono::milliseconds timeout = 20s) {
  Loop loop;
  return await_task(loop, probe_backend(loop, backend, host, timeout));
}

// A host whose bwrap is the given shell script; `$directory` in it is the scratch directory.
BackendHost host_with_bwrap(const Scratch& scratch, const std::string& script) {
  BackendHost host = inspect_host();
  host.bwrap = scratch / "bwrap";
  write_file(host.bwrap, "#!/bin/sh\ndirectory='" + scratch.path() + "'\n" + script, 0755);
  return host;
}

// Reports ready, and runs what stands after the second `--` with nothing around it.
constexpr const char* kUnconfined = R"(
printf '%s\n' "$@" > "$directory/argv"
echo '{"status":"ready"}' >&3
exec 3>&-
while [ "$1" != -- ]; do shift; done; shift
while [ "$1" != -- ]; do shift; done; shift
)";

}  // namespace

TEST_CASE("probe: the launcher of this host is found whatever the directory and PATH") {
  BackendHost before = inspect_host();
  REQUIRE(before.launcher.starts_with("/"));
  CHECK(access(before.launcher.c_str(), X_OK) == 0);
  CHECK(before.root == (geteuid() == 0));

  Scratch scratch;
  write_file(scratch / "bwrap", "#!/bin/sh\n", 0755);
  write_file(scratch / "stockade-launch", "#!/bin/sh\n", 0755);
  std::string path = getenv("PATH");
  char cwd[4096];
  REQUIRE(getcwd(cwd, sizeof cwd));
  setenv("PATH", (scratch.path() + ":" + path).c_str(), 1);
  REQUIRE(chdir(scratch.path().c_str()) == 0);
  BackendHost after = inspect_host();
  setenv("PATH", path.c_str(), 1);
  REQUIRE(chdir(cwd) == 0);
  CHECK(after.launcher == before.launcher);
  CHECK(after.bwrap == before.bwrap);
}

TEST_CASE("probe: a launcher that is missing makes every backend unusable") {
  BackendHost host = inspect_host();
  host.launcher = "/no-such/stockade-launch";
  for (Backend backend : {Backend::namespace_, Backend::bwrap, Backend::landlock}) {
    auto verdict = probe(backend, host);
    CHECK_FALSE(verdict.usable);
    CHECK_THAT(verdict.reason, ContainsSubstring("/no-such/stockade-launch"));
  }
}

TEST_CASE("probe: without a bwrap the reason says what to install") {
  BackendHost host = inspect_host();
  host.bwrap.clear();
  auto verdict = probe(Backend::bwrap, host);
  CHECK_FALSE(verdict.usable);
  CHECK(verdict.reason == kBwrapMissing);
}

TEST_CASE("probe: what this host can run protects metadata, and what it cannot has a reason") {
  BackendHost host = inspect_host();
  for (Backend backend : {Backend::namespace_, Backend::landlock}) {
    auto verdict = probe(backend, host);
    CAPTURE(verdict.reason);
    CHECK(verdict.usable == verdict.metadata_protected);
    CHECK(verdict.usable == verdict.reason.empty());
  }
  CHECK(probe(Backend::landlock, host).usable == (host.landlock_abi > 0));
}

TEST_CASE("probe: a bwrap that is usable protects metadata and one that is not has a reason") {
  auto verdict = probe(Backend::bwrap, inspect_host());
  CHECK(verdict.usable == verdict.reason.empty());
  CHECK(verdict.usable == verdict.metadata_protected);
}

TEST_CASE("probe: a runner that refuses is not usable and its first line is the reason") {
  Scratch scratch;
  auto verdict =
      probe(Backend::bwrap, host_with_bwrap(scratch,
                                            "echo 'bwrap: setting up uid map: Permission denied'"
                                            " >&2; echo more >&2; exit 1\n"));
  CHECK_FALSE(verdict.usable);
  CHECK(verdict.reason == "bwrap: setting up uid map: Permission denied");
}

TEST_CASE("probe: a runner that ends in silence is not usable whatever its status") {
  Scratch scratch;
  for (const char* script : {"exit 0\n", "exit 1\n", "kill -9 $$\n"}) {
    auto verdict = probe(Backend::bwrap, host_with_bwrap(scratch, script));
    CHECK_FALSE(verdict.usable);
    CHECK(verdict.reason == "the runner ended before it was ready");
  }
}

TEST_CASE("probe: a refusal on the status channel is the reason") {
  Scratch scratch;
  auto verdict =
      probe(Backend::bwrap,
            host_with_bwrap(scratch,
                            "echo noise >&2\n"
                            "echo '{\"status\":\"refused\",\"message\":\"no rule\"}' >&3\n"));
  CHECK_FALSE(verdict.usable);
  CHECK(verdict.reason == "no rule");
}

TEST_CASE("probe: a runner that confines nothing is found out") {
  Scratch scratch;
  auto verdict =
      probe(Backend::bwrap, host_with_bwrap(scratch, std::string(kUnconfined) + "exec \"$@\"\n"));
  CHECK_FALSE(verdict.usable);
  CHECK(verdict.reason == "a write outside the workspace was not stopped");
  // The probe used the argv of a real run.
  CHECK_THAT(read_file(scratch / "argv"), ContainsSubstring("--unshare-pid\n"));
  CHECK_THAT(read_file(scratch / "argv"), ContainsSubstring("--status-fd\n3\n"));
}

TEST_CASE("probe: a runner that lets nothing happen is not usable") {
  Scratch scratch;
  auto verdict = probe(Backend::bwrap, host_with_bwrap(scratch, std::string(kUnconfined) +
                                                                    "echo nothing >&2; exit 0\n"));
  CHECK_FALSE(verdict.usable);
  CHECK(verdict.reason == "a write inside the workspace did not land: nothing");
}

TEST_CASE("probe: a runner that protects contents but not metadata is usable and told so") {
  Scratch scratch;
  auto verdict = probe(Backend::bwrap, host_with_bwrap(scratch, std::string(kUnconfined) +
                                                                    "shift 4; : > inside; chmod 777"
                                                                    " \"$1/victim\"\n"));
  CHECK(verdict.usable);
  CHECK_FALSE(verdict.metadata_protected);
  auto tight =
      probe(Backend::bwrap, host_with_bwrap(scratch, std::string(kUnconfined) + ": > inside\n"));
  CHECK(tight.usable);
  CHECK(tight.metadata_protected);
}

TEST_CASE("probe: one that hangs ends at its timeout and is killed") {
  Scratch scratch;
  auto started = std::chrono::steady_clock::now();
  auto verdict = probe(Backend::bwrap,
                       host_with_bwrap(scratch,
                                       "echo $$ > \"$directory/pid\"\ntrap '' TERM\n"
                                       "while :; do sleep 0.1; done\n"),
                       500ms);
  CHECK_FALSE(verdict.usable);
  CHECK(verdict.reason == "the probe did not end within 500 ms");
  CHECK(std::chrono::steady_clock::now() - started < 15s);
  std::string pid = read_file(scratch / "pid");
  REQUIRE_FALSE(pid.empty());
  CHECK_FALSE(exists("/proc/" + pid.substr(0, pid.size() - 1)));
}

TEST_CASE("probe: it leaves no directory behind") {
  Scratch scratch;
  probe(Backend::bwrap, host_with_bwrap(scratch, "pwd > \"$directory/pwd\"\n"));
  std::string directory = read_file(scratch / "pwd");
  REQUIRE(directory.ends_with("/workspace\n"));
  directory.resize(directory.size() - std::string("/workspace\n").size());
  CHECK_THAT(directory, ContainsSubstring("/stockade-probe-"));
  CHECK_FALSE(exists(directory));
}

TEST_CASE("probe: a runner that floods its streams does not fill the host") {
  Scratch scratch;
  auto verdict =
      probe(Backend::bwrap, host_with_bwrap(scratch, "head -c 20000000 /dev/zero >&2; exit 1\n"));
  CHECK_FALSE(verdict.usable);
  CHECK(verdict.reason.size() <= 16384);
}

namespace {

// Stands in for macOS' sandbox-exec: reads the first root from the profile and confines with bwrap.
constexpr const char* kFakeSandboxExec = R"SH(#!/bin/sh
[ "$1" = -p ] || { echo "sandbox-exec: no profile" >&2; exit 64; }
root=$(printf '%s' "$2" | grep -o 'subpath "[^"]*"' | head -n 1 | cut -d '"' -f 2)
shift 2
[ "$1" = -- ] && shift
exec bwrap --ro-bind / / --dev /dev ${root:+--bind "$root" "$root"} --chdir "$PWD" -- "$@"
)SH";

BackendHost mac(const Scratch& scratch, const std::string& script) {
  BackendHost host;
  host.sandbox_exec = scratch / "sandbox-exec";
  write_file(host.sandbox_exec, script, 0755);
  return host;
}

}  // namespace

TEST_CASE("probe: a sandbox-exec that confines is usable, by what it did and without a channel") {
  if (inspect_host().bwrap.empty() || !probe(Backend::bwrap, inspect_host()).usable) {
    WARN("no bwrap works here that could play sandbox-exec");
    return;
  }
  Scratch scratch;
  auto verdict = probe(Backend::seatbelt, mac(scratch, kFakeSandboxExec));
  CAPTURE(verdict.reason);
  CHECK(verdict.full());
}

TEST_CASE("probe: a sandbox-exec that refuses, does nothing or confines nothing is not usable") {
  Scratch scratch;
  auto refuses =
      probe(Backend::seatbelt, mac(scratch,
                                   "#!/bin/sh\necho 'sandbox-exec: sandbox_apply: Operation not "
                                   "permitted' >&2\nexit 71\n"));
  CHECK_FALSE(refuses.usable);
  CHECK(refuses.reason == "sandbox-exec: sandbox_apply: Operation not permitted");
  CHECK_FALSE(probe(Backend::seatbelt, mac(scratch, "#!/bin/sh\nexit 0\n")).usable);
  auto open = probe(Backend::seatbelt, mac(scratch, "#!/bin/sh\nshift 3\nexec \"$@\"\n"));
  CHECK_FALSE(open.usable);
  CHECK_THAT(open.reason, ContainsSubstring("outside the workspace was not stopped"));
}
