// SPDX-License-Identifier: MIT
// Denials, and runners that fail: proven by the status channel where there is one, by a rule where
// there is none.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "sandbox/errors.hpp"
#include "tests/bash-sandbox/rig.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using namespace std::chrono_literals;
using stockade::test::exists;
using stockade::test::kDanger;
using stockade::test::Rig;
using stockade::test::Scratch;
using stockade::test::write_file;

namespace {

// What a launcher does: it reports, closes its channel and becomes the command.
constexpr const char* kGoodRunner = "echo '{\"status\":\"ready\"}' >&3; exec 3>&-; exec \"$@\"";

std::string runner_failure(const std::string& detail) {
  return sandbox_unavailable_message(ConfinedSandboxMode::read_only, detail);
}

}  // namespace

TEST_CASE("executor: a denial is a result with the line that shows it") {
  Rig rig;
  auto result = rig.bash("echo start >&2; echo 'x: Permission denied' >&2; exit 1");
  CHECK(result.outcome == BashOutcome::denied);
  CHECK(result.sandbox.denied);
  CHECK(result.sandbox.evidence == "x: Permission denied");
  CHECK(result.sandbox.mode == SandboxMode::read_only);
  CHECK(result.sandbox.enforcement == SandboxEnforcement::full);
  CHECK(result.exit_code == 1);
  CHECK_FALSE(result.error);
}

TEST_CASE("executor: denial text with success or with death by a signal is no denial") {
  Rig rig;
  CHECK(rig.bash("echo 'x: Permission denied' >&2").outcome == BashOutcome::ok);
  auto killed = rig.bash("echo 'x: Permission denied' >&2; kill -TERM $$");
  CHECK(killed.outcome == BashOutcome::failed);
  CHECK_FALSE(killed.sandbox.denied);
  CHECK_FALSE(killed.sandbox.evidence);
}

TEST_CASE("executor: on standard output a diagnostic is a denial when the errors were sent there") {
  Rig rig;
  for (const char* line : {"touch: cannot touch 'x': Permission denied",
                           "PermissionError: [Errno 13] Permission denied: 'x'",
                           "Error: EACCES: permission denied, open 'x'"}) {
    CAPTURE(line);
    auto result = rig.bash("echo \"" + std::string(line) + "\" >&2 2>&1; exit 1");
    CHECK(result.outcome == BashOutcome::denied);
    auto merged = rig.bash("(echo \"" + std::string(line) + "\" >&2; seq 1 100000; exit 1) 2>&1");
    CHECK(merged.outcome == BashOutcome::denied);
    CHECK(merged.sandbox.evidence == line);
    CHECK(rig.bash("echo \"" + std::string(line) + "\"; exit 0").outcome == BashOutcome::ok);
    // With errors of its own on stderr the command kept the two apart.
    auto apart = rig.bash("echo \"" + std::string(line) + "\"; echo other >&2; exit 1");
    CHECK(apart.outcome == BashOutcome::failed);
    CHECK_FALSE(apart.sandbox.evidence);
  }
}

TEST_CASE("executor: other words on standard output are no denial") {
  Rig rig;
  for (const char* line : {"Permission denied", "grep for Permission denied here",
                           "x: Permission denied by the moderator", "> \"Permission denied\""}) {
    CAPTURE(line);
    auto result = rig.bash("echo '" + std::string(line) + "'; exit 1");
    CHECK(result.outcome == BashOutcome::failed);
    CHECK_FALSE(result.sandbox.denied);
  }
}

TEST_CASE("executor: a denial counts however much follows it") {
  Rig rig({.cwd = "", .max_output_bytes = 1000, .max_spill_bytes = 1000});
  auto result = rig.bash("echo 'x: Permission denied' >&2; seq 1 200000 >&2; exit 1");
  CHECK(result.outcome == BashOutcome::denied);
  CHECK(result.sandbox.evidence == "x: Permission denied");
  CHECK(result.err.bytes.find("denied") == std::string::npos);
}

TEST_CASE("executor: the line of a rule is a runner failure and outranks a denial") {
  Rig rig;
  std::string line = "fake-runner: cannot open rule path: /x: Permission denied";
  rig.sandbox->answer.runner_failure_rules = {{std::nullopt, {"fake-runner: "}, {}}};
  rig.sandbox->run_with("echo '" + line + "' >&2; exit 125");
  auto result = rig.bash("true");
  CHECK(result.outcome == BashOutcome::runner_failed);
  CHECK(result.sandbox.runner_failed);
  CHECK_FALSE(result.sandbox.denied);
  CHECK_FALSE(result.sandbox.ran);  // inferred, and so unknown
  CHECK(result.sandbox.evidence == line);
  REQUIRE(result.error);
  CHECK(result.error->code == "SANDBOX_UNAVAILABLE");
  CHECK(result.error->message == runner_failure(line));
}

TEST_CASE("executor: a notice of the runner is no failure") {
  Rig rig;
  std::string notice = "landlock-run: partial enforcement (older Landlock ABI)";
  rig.sandbox->answer.enforcement = SandboxEnforcement::partial;
  rig.sandbox->answer.runner_failure_rules = {
      {std::vector<int>{125}, {"landlock-run: "}, {notice}}};
  rig.sandbox->run_with("echo '" + notice + "' >&2; exec \"$@\"");
  for (int code : {0, 1, 2, 125, 126, 127}) {
    auto result = rig.bash("exit " + std::to_string(code));
    CHECK(result.exit_code == code);
    CHECK(result.outcome == (code == 0 ? BashOutcome::ok : BashOutcome::failed));
    CHECK(result.err.bytes == notice + "\n");
    CHECK(result.sandbox.enforcement == SandboxEnforcement::partial);
  }
  auto denied = rig.bash("echo 'x: Permission denied' >&2; exit 1");
  CHECK(denied.outcome == BashOutcome::denied);
  CHECK(denied.sandbox.evidence == "x: Permission denied");

  rig.sandbox->run_with("echo '" + notice + "' >&2; echo 'landlock-run: no' >&2; exit 125");
  auto failed = rig.bash("true");
  CHECK(failed.outcome == BashOutcome::runner_failed);
  CHECK(failed.error->message == runner_failure("landlock-run: no"));
  CHECK(failed.err.bytes == notice + "\nlandlock-run: no\n");
}

TEST_CASE("executor: with a status channel a command that ran cannot look like its runner") {
  Rig rig;
  rig.sandbox->report_with(kGoodRunner);
  rig.sandbox->answer.runner_failure_rules = {{std::nullopt, {"bwrap: ", "landlock-run: "}, {}}};
  for (const char* command :
       {"echo 'bwrap: Can not mount proc: Operation not permitted' >&2; exit 1",
        "echo 'landlock-run: restrict failed' >&2; exit 125",
        "echo '{\"status\":\"refused\"}' >&2; exit 125",
        "{ echo '{\"status\":\"refused\"}' >&3; } 2>/dev/null; exit 125", "exit 1"}) {
    CAPTURE(command);
    auto result = rig.bash(command);
    CHECK(result.outcome == BashOutcome::failed);
    CHECK(result.sandbox.ran == true);
    CHECK_FALSE(result.sandbox.runner_failed);
    CHECK_FALSE(result.error);
  }
}

TEST_CASE("executor: without a status channel the same text is taken for the runner") {
  Rig rig;
  rig.sandbox->answer.runner_failure_rules = {{std::nullopt, {"bwrap: "}, {}}};
  auto result = rig.bash("echo 'bwrap: x' >&2; exit 3");
  CHECK(result.outcome == BashOutcome::runner_failed);
  auto plain = rig.bash("exit 3");
  CHECK(plain.outcome == BashOutcome::failed);
  CHECK(plain.sandbox.ran == std::nullopt);
}

TEST_CASE("executor: a command that ran behind a channel is proven to have run") {
  Rig rig;
  rig.sandbox->report_with(kGoodRunner);
  auto result = rig.bash("echo out");
  CHECK(result.outcome == BashOutcome::ok);
  CHECK(result.out.bytes == "out\n");
  CHECK(result.sandbox.ran == true);
  CHECK(rig.bash("echo 'x: Permission denied' >&2; exit 1").outcome == BashOutcome::denied);
}

TEST_CASE("executor: a runner that ends before it is ready failed whatever it says") {
  Rig rig;
  rig.sandbox->answer.runner_failure_rules = {{std::nullopt, {"bwrap: "}, {}}};
  struct Row {
    const char* script;
    const char* detail;
  };
  for (const auto& row : {
           Row{"exit 0", "the runner exited with 0 before it was ready to start the command"},
           Row{"echo x >&2; exit 3",
               "the runner exited with 3 before it was ready to start the command"},
           Row{"kill -KILL $$",
               "the runner was ended by SIGKILL before it was ready to start the command"},
           Row{"echo 'bwrap: Can not mkdir /x: Read-only file system' >&2; exit 1",
               "bwrap: Can not mkdir /x: Read-only file system"},
           Row{"echo '{\"status\":\"refused\",\"message\":\"no rule\"}' >&3; exit 125", "no rule"},
       }) {
    CAPTURE(row.script);
    rig.sandbox->report_with(row.script);
    auto result = rig.bash("true");
    CHECK(result.outcome == BashOutcome::runner_failed);
    CHECK(result.sandbox.ran == false);
    CHECK_FALSE(result.sandbox.denied);
    REQUIRE(result.error);
    CHECK(result.error->code == "SANDBOX_UNAVAILABLE");
    CHECK(result.error->message == runner_failure(row.detail));
  }
}

TEST_CASE("executor: a failed exec that is reported after ready is a runner failure") {
  Rig rig;
  rig.sandbox->report_with(
      "echo '{\"status\":\"ready\"}' >&3;"
      " echo '{\"status\":\"exec-failed\",\"message\":\"cannot execute bash\"}' >&3; exit 125");
  auto result = rig.bash("true");
  CHECK(result.outcome == BashOutcome::runner_failed);
  CHECK(result.error->message == runner_failure("cannot execute bash"));
}

TEST_CASE("executor: a channel that is flooded proves nothing and does not fill the host") {
  Rig rig;
  rig.sandbox->report_with("head -c 5000000 /dev/zero >&3; exit 0");
  auto result = rig.bash("true");
  CHECK(result.outcome == BashOutcome::runner_failed);
  CHECK(result.error->message.size() < 2000);
}

TEST_CASE("executor: a runner that hangs before it is ready is ended by the timeout") {
  Rig rig({.cwd = "", .grace_ms = 300});
  rig.sandbox->report_with("trap '' TERM; while :; do sleep 0.05; done");
  auto result = rig.run({.command = "true", .timeout_ms = 300});
  CHECK(result.outcome == BashOutcome::timed_out);
  CHECK(result.sandbox.ran == false);
  CHECK(result.duration < 20s);
}

TEST_CASE("executor: the reported end of a command is the end, whatever its runner still does") {
  Rig rig;
  // Holds every stream and lives on, as a runner does whose namespaces the kernel takes apart.
  rig.sandbox->report_with(
      "echo '{\"status\":\"ready\"}' >&3; \"$@\" 3>&-;"
      " echo '{\"status\":\"exited\",\"exitCode\":7}' >&3; sleep 5");
  auto result = rig.bash("seq 1 10000; echo last >&2; exit 7");
  CHECK(result.outcome == BashOutcome::failed);
  CHECK(result.exit_code == 7);
  CHECK(result.sandbox.ran == true);
  CHECK(result.out.total == 48894);
  CHECK(result.err.bytes == "last\n");
  CHECK(result.duration < 4s);

  // The timeout came first: the runner is ended and waited for.
  rig.sandbox->report_with(
      "echo '{\"status\":\"ready\"}' >&3; trap 'sleep 0.3;"
      " echo \"{\\\"status\\\":\\\"exited\\\",\\\"exitCode\\\":0}\" >&3; exit 0' TERM;"
      " while :; do sleep 0.05; done");
  auto late = rig.run({.command = "true", .timeout_ms = 200});
  CHECK(late.outcome == BashOutcome::timed_out);
  CHECK(late.duration >= 450ms);
}

TEST_CASE("executor: a runner that cannot be executed is named and the command did not run") {
  Scratch scratch;
  write_file(scratch / "plain", "#!/bin/sh\nexec \"$@\"\n", 0644);
  write_file(scratch / "no-interpreter", "#!/no-such-interpreter\n", 0755);
  std::filesystem::create_directory(scratch / "directory");
  for (std::string name : {"missing", "plain", "no-interpreter", "directory"}) {
    CAPTURE(name);
    std::string runner = scratch / name;
    Rig rig;
    rig.sandbox->answer.argv = {runner};
    auto result = rig.bash("touch " + (scratch / "ran"));
    CHECK(result.outcome == BashOutcome::runner_failed);
    CHECK(result.sandbox.runner_failed);
    CHECK(result.sandbox.ran == false);
    CHECK_FALSE(result.sandbox.denied);
    CHECK(result.sandbox.enforcement == SandboxEnforcement::full);
    REQUIRE(result.error);
    CHECK(result.error->code == "SANDBOX_UNAVAILABLE");
    CHECK_THAT(result.error->message, ContainsSubstring("Runner failure: "));
    CHECK_THAT(result.error->message, ContainsSubstring(runner));

    auto process = rig.start("touch " + (scratch / "ran"));
    auto settled = rig.settle(*process);
    CHECK(process->status() == BashProcessStatus::killed);
    CHECK(settled.sandbox.runner_failed);
    CHECK_THAT(process->read().output, ContainsSubstring("[stderr]\nspawn failed: "));
    CHECK_FALSE(exists(scratch / "ran"));
  }
}

TEST_CASE("executor: a working directory that cannot be entered is not the runner's fault") {
  Scratch scratch;
  write_file(scratch / "file", "");
  Rig rig({.cwd = scratch.path()});
  struct Row {
    std::string directory;
    std::string reason;
  };
  for (const auto& row : {Row{scratch / "missing", "ENOENT"}, Row{scratch / "file", "ENOTDIR"}}) {
    auto result = rig.run({.command = "touch " + (scratch / "ran"), .workdir = row.directory});
    CHECK(result.outcome == BashOutcome::failed);
    CHECK_FALSE(result.sandbox.runner_failed);
    CHECK_FALSE(result.sandbox.denied);
    CHECK(result.sandbox.ran == false);
    REQUIRE(result.error);
    CHECK(result.error->code == "WORKDIR_UNUSABLE");
    CHECK_THAT(result.error->message, ContainsSubstring(row.directory));
    CHECK_THAT(result.error->message, ContainsSubstring(row.reason));
    CHECK_FALSE(exists(scratch / "ran"));
  }
  CHECK(rig.bash("echo next").out.bytes == "next\n");
}

TEST_CASE("executor: a working directory that goes away is named and the next call works") {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "d");
  Rig rig({.cwd = scratch.path()});
  BashRequest request{.command = "rmdir " + (scratch / "d"), .workdir = scratch / "d"};
  CHECK(rig.run(request).outcome == BashOutcome::ok);
  request.command = "pwd";
  auto gone = rig.run(request);
  CHECK(gone.out.bytes.empty());
  CHECK(gone.error->code == "WORKDIR_UNUSABLE");
  CHECK(rig.bash("pwd").out.bytes == scratch.path() + "\n");
  std::filesystem::create_directory(scratch / "d");
  CHECK(rig.run(request).out.bytes == (scratch / "d") + "\n");
}

TEST_CASE("executor: a working directory that the user may not enter is refused") {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "closed");
  chmod((scratch / "closed").c_str(), 0);
  Rig rig;
  auto result = rig.run({.command = "pwd", .workdir = scratch / "closed"});
  if (geteuid() == 0) {
    CHECK(result.outcome == BashOutcome::ok);
  } else {
    REQUIRE(result.error);
    CHECK(result.error->code == "WORKDIR_UNUSABLE");
    CHECK_THAT(result.error->message, ContainsSubstring("EACCES"));
  }
  chmod((scratch / "closed").c_str(), 0755);
}

TEST_CASE("executor: without a runner a missing shell is a failure of the spawn") {
  Scratch scratch;
  std::string path = getenv("PATH");
  setenv("PATH", scratch.path().c_str(), 1);
  Rig rig;
  BashRequest request{.command = "true"};
  request.policy = kDanger;
  auto result = rig.run(request);
  setenv("PATH", path.c_str(), 1);
  CHECK(result.outcome == BashOutcome::failed);
  CHECK_FALSE(result.sandbox.runner_failed);
  REQUIRE(result.error);
  CHECK(result.error->code == "SPAWN_FAILED");
  CHECK_THAT(result.error->message, ContainsSubstring("bash"));
}
