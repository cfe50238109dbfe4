// SPDX-License-Identifier: MIT
// Commands in the background: Shell::start and the handle that it gives.
#include <signal.h>

#include "tests/bash-sandbox/rig.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using namespace std::chrono_literals;
using stockade::test::alive;
using stockade::test::exists;
using stockade::test::read_file;
using stockade::test::Rig;
using stockade::test::run_for;
using stockade::test::Scratch;
using stockade::test::wait_until;

namespace {

std::string read_when_there(Rig& rig, BashProcess& process) {
  std::string text;
  wait_until(
      rig.loop, [&] { return !(text += process.read().output).empty(); }, 20s);
  return text;
}

}  // namespace

TEST_CASE("background: output is read piece by piece and also after the end") {
  Scratch scratch;
  Rig rig;
  auto process = rig.start("echo first; while [ ! -e " + (scratch / "go") +
                           " ]; do sleep 0.02; done; echo second");
  CHECK(process->status() == BashProcessStatus::running);
  CHECK(read_when_there(rig, *process) == "first\n");
  CHECK(process->read().output.empty());
  stockade::test::write_file(scratch / "go", "");
  auto result = rig.settle(*process);
  CHECK(process->status() == BashProcessStatus::completed);
  CHECK(process->read().output == "second\n");
  CHECK(process->read().output.empty());
  CHECK_FALSE(process->read().lossy);
  CHECK(result.out.bytes == "first\nsecond\n");
}

TEST_CASE("background: a read shows errors under their own heading") {
  Rig rig;
  for (const char* command : {"echo out; echo err >&2", "printf out; echo err >&2"}) {
    auto process = rig.start(command);
    rig.settle(*process);
    CHECK(process->read().output == "out\n[stderr]\nerr\n");
  }
  auto process = rig.start("echo err >&2");
  rig.settle(*process);
  CHECK(process->read().output == "[stderr]\nerr\n");
}

TEST_CASE("background: a read that came too late is lossy and names the file with it all") {
  Rig rig({.cwd = "", .max_output_bytes = 100});
  auto out = rig.start("seq 1 100");
  auto result = rig.settle(*out);
  auto read = out->read();
  CHECK(read.lossy);
  REQUIRE(read.stdout_spill_path);
  CHECK_FALSE(read.stderr_spill_path);
  CHECK(read.output.size() == 100);
  CHECK(read.output.ends_with("\n99\n100\n"));
  CHECK(read_file(*read.stdout_spill_path).size() == result.out.total);

  auto err = rig.start("seq 1 100 >&2");
  rig.settle(*err);
  CHECK(err->read().stderr_spill_path);
  CHECK_FALSE(err->read().lossy);  // there was nothing new to lose
}

TEST_CASE("background: the timeout of a call does not bound it") {
  Rig rig({.cwd = "", .timeout_ms = 100, .max_timeout_ms = 100});
  auto process = rig.start("sleep 0.6; echo done");
  auto result = rig.settle(*process);
  CHECK(result.outcome == BashOutcome::ok);
  CHECK(process->read().output == "done\n");
}

TEST_CASE("background: a kill counts once and ends with TERM") {
  Rig rig;
  auto process = rig.start("echo up; sleep 60");
  REQUIRE(read_when_there(rig, *process) == "up\n");
  CHECK(process->kill());
  CHECK(process->status() == BashProcessStatus::killed);
  CHECK_FALSE(process->kill());
  auto result = rig.settle(*process);
  CHECK(process->status() == BashProcessStatus::killed);
  CHECK(result.signal == SIGTERM);
  CHECK_FALSE(result.timed_out);
  CHECK_FALSE(result.aborted);
  CHECK_FALSE(process->kill());
}

TEST_CASE("background: a finished one cannot be killed") {
  Rig rig;
  auto process = rig.start("exit 3");
  auto result = rig.settle(*process);
  CHECK(result.exit_code == 3);
  CHECK(process->status() == BashProcessStatus::completed);
  CHECK_FALSE(process->kill());
  CHECK(process->status() == BashProcessStatus::completed);
}

TEST_CASE("background: one that ignores TERM is killed after the grace") {
  Rig rig({.cwd = "", .grace_ms = 300});
  auto process = rig.start("trap '' TERM; echo up; while :; do sleep 0.05; done");
  REQUIRE(read_when_there(rig, *process) == "up\n");
  CHECK(process->kill());
  CHECK(rig.settle(*process).signal == SIGKILL);
}

TEST_CASE("background: one that was killed and exits with 0 stays killed") {
  Rig rig;
  auto process = rig.start("trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done");
  REQUIRE(read_when_there(rig, *process) == "up\n");
  CHECK(process->kill());
  auto result = rig.settle(*process);
  CHECK(process->status() == BashProcessStatus::killed);
  CHECK(result.exit_code == 0);
  CHECK_FALSE(result.signal);
}

TEST_CASE("background: one that a signal ended is killed") {
  Rig rig;
  auto process = rig.start("kill -TERM $$");
  auto result = rig.settle(*process);
  CHECK(process->status() == BashProcessStatus::killed);
  CHECK_FALSE(result.exit_code);
  CHECK(result.signal == SIGTERM);
}

TEST_CASE("background: one that was aborted is killed") {
  Rig rig;
  AbortController controller;
  auto process = rig.start("echo up; sleep 60", controller.signal());
  REQUIRE(read_when_there(rig, *process) == "up\n");
  controller.abort();
  auto result = rig.settle(*process);
  CHECK(process->status() == BashProcessStatus::killed);
  CHECK(result.aborted);

  auto never = rig.start("echo up", controller.signal());
  CHECK(rig.settle(*never).aborted);
  CHECK(never->status() == BashProcessStatus::killed);
  CHECK(never->read().output.empty());
}

TEST_CASE("background: a kill with denial text before it is no denial") {
  Rig rig;
  auto process = rig.start("echo 'x: Permission denied' >&2; sleep 60");
  REQUIRE_FALSE(read_when_there(rig, *process).empty());
  process->kill();
  auto result = rig.settle(*process);
  CHECK_FALSE(result.sandbox.denied);
  CHECK(result.sandbox.enforcement == SandboxEnforcement::full);
}

TEST_CASE("background: a denial is a fact of the settled handle") {
  Rig rig;
  auto process = rig.start("echo 'x: Permission denied' >&2; exit 1");
  auto result = rig.settle(*process);
  CHECK(result.sandbox.denied);
  CHECK(process->status() == BashProcessStatus::completed);
}

TEST_CASE("background: dropping the handle kills it") {
  Scratch scratch;
  Rig rig;
  auto process = rig.start("echo $$; sleep 60; touch " + (scratch / "late"));
  std::string pid = read_when_there(rig, *process);
  REQUIRE(pid.size() > 1);
  pid.pop_back();
  CHECK(alive(pid));
  process.reset();
  CHECK(wait_until(
      rig.loop, [&] { return !exists("/proc/" + pid); }, 10s));
  CHECK_FALSE(exists(scratch / "late"));
}

TEST_CASE("background: one whose directory is missing settles as killed and says why once") {
  Rig rig;
  auto process = rig.shell->start(
      rig.shell->resolve({.command = "true", .workdir = "/no-such-directory"}), {});
  auto result = rig.settle(*process);
  CHECK(process->status() == BashProcessStatus::killed);
  CHECK(result.error->code == "WORKDIR_UNUSABLE");
  CHECK_FALSE(process->kill());
  auto text = process->read().output;
  CHECK(text.starts_with("[stderr]\nspawn failed: "));
  CHECK_THAT(text, ContainsSubstring("/no-such-directory"));
  CHECK(process->read().output.empty());
}

TEST_CASE("background: it outlives the executor and stays readable") {
  Rig rig;
  auto process = rig.start("sleep 0.3; echo done");
  rig.shell.reset();
  rig.settle(*process);
  CHECK(process->read().output == "done\n");
}

TEST_CASE("background: a character that comes in two pieces is read as one") {
  Scratch scratch;
  Rig rig({.cwd = scratch.path()});
  auto process = rig.start(
      "printf 'a\\xf0\\x9f'; while [ ! -e go ]; do sleep 0.02; done; printf '\\x98\\x80b'");
  CHECK(read_when_there(rig, *process) == "a");
  CHECK(process->read().output.empty());
  stockade::test::write_file(scratch / "go", "");
  rig.settle(*process);
  CHECK(process->read().output ==
        "\xF0\x9F\x98\x80"
        "b");
}
