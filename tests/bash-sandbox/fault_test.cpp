// SPDX-License-Identifier: MIT
// Faults at each step of a call; docs/faults.md has the list. Each ends in one clear result, leaves
// nothing behind, and the call after it is not concerned. Where the fault is the kernel's answer it
// is real: a resource limit, or a filter that refuses the system call (tests/programs/faulty_host).
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/bash-sandbox/rig.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/children.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/json_lines.hpp"
#include "tests/support/program.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using namespace std::chrono_literals;
using stockade::test::alive;
using stockade::test::children;
using stockade::test::json_lines;
using stockade::test::kDanger;
using stockade::test::read_file;
using stockade::test::Rig;
using stockade::test::run_program;
using stockade::test::Scratch;
using stockade::test::wait_until;

namespace {

struct Faulty {
  std::vector<nlohmann::json> calls;
  nlohmann::json left;
};

Faulty host_without(const std::string& call, int error, const std::string& mode,
                    const std::string& command, int count = 2) {
  auto program = run_program({TEST_PROGRAMS "/faulty_host", call, std::to_string(error),
                              std::to_string(count), mode, command});
  INFO(program.err);
  CHECK(program.status == 0);
  Faulty faulty;
  faulty.calls = json_lines(program.out);
  REQUIRE(faulty.calls.size() == static_cast<std::size_t>(count) + 1);
  faulty.left = faulty.calls.back();
  faulty.calls.pop_back();
  CHECK(faulty.left["children"] == "");
  return faulty;
}

}  // namespace

TEST_CASE("fault: without one there is none") {
  for (const char* mode : {"danger", "confined"}) {
    auto faulty = host_without("none", 0, mode, "echo hi; exit 3");
    for (const auto& call : faulty.calls) {
      CHECK(call["outcome"] == "failed");
      CHECK(call["exitCode"] == 3);
      CHECK(call["stdout"]["text"] == "hi\n");
    }
    CHECK(faulty.left["descriptors"] == 0);
  }
}

TEST_CASE("fault: a process that cannot be made has a code of its own and did not run") {
  struct Row {
    const char* call;
    int error;
    const char* code;
    const char* text;
  };
  for (const auto& row : {
           Row{"clone", EAGAIN, "PROCESS_LIMIT", "EAGAIN"},
           Row{"clone", ENOMEM, "OUT_OF_MEMORY", "ENOMEM"},
           Row{"clone", EMFILE, "DESCRIPTOR_LIMIT", "EMFILE"},
           Row{"clone", EINVAL, "SPAWN_RESOURCES", "EINVAL"},
           Row{"execve", EAGAIN, "PROCESS_LIMIT", "EAGAIN"},
           Row{"execve", ENOMEM, "OUT_OF_MEMORY", "ENOMEM"},
           Row{"execve", E2BIG, "COMMAND_LINE_TOO_LONG", "E2BIG"},
           Row{"epoll_ctl", ENOMEM, "OUT_OF_MEMORY", "ENOMEM"},
           Row{"epoll_ctl", ENOSPC, "SPAWN_RESOURCES", "ENOSPC"},
       })
    for (const char* mode : {"danger", "confined"}) {
      CAPTURE(row.call, row.text, mode);
      Scratch scratch("/tmp", 0777);
      auto faulty = host_without(row.call, row.error, mode, "sleep 1; touch " + (scratch / "ran"));
      for (const auto& call : faulty.calls) {
        CHECK(call["outcome"] == "failed");
        CHECK(call["sandbox"]["ran"] == false);
        CHECK(call["sandbox"]["runnerFailed"] == false);
        CHECK(call["error"]["code"] == row.code);
        CHECK_THAT(call["error"]["message"].get<std::string>(),
                   ContainsSubstring(row.text) && ContainsSubstring("the command was not run"));
      }
      CHECK(faulty.left["descriptors"] == 0);
      CHECK_FALSE(stockade::test::exists(scratch / "ran"));
    }
}

TEST_CASE("fault: wherever the descriptors run out the call says so and none leaks") {
  Rig rig;
  rig.bash("true");
  rig.loop.drain();
  auto open = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator{});
  };
  const auto before = open();
  int highest = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    highest = std::max(highest, std::stoi(entry.path().filename()));
  int refused = 0;
  int succeeded = 0;
  for (int most = 4; most < highest + 20; ++most) {
    CAPTURE(most);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    rlimit low{static_cast<rlim_t>(most), limit.rlim_max};
    BashRequest request{.command = "echo hi", .input = "input"};
    if (most % 2) request.policy = kDanger;
    auto spec = rig.shell->resolve(request);
    setrlimit(RLIMIT_NOFILE, &low);
    auto result = stockade::test::await_task(rig.loop, rig.shell->run(spec, {}, nullptr));
    setrlimit(RLIMIT_NOFILE, &limit);
    if (result.error) {
      ++refused;
      CHECK(result.error->code == "DESCRIPTOR_LIMIT");
      CHECK(result.sandbox.ran == false);
    } else {
      ++succeeded;
      CHECK(result.out.bytes == "hi\n");
    }
    rig.loop.drain();
    CHECK(open() == before);
  }
  CHECK(refused > 3);
  CHECK(succeeded > 3);
}

TEST_CASE("fault: a loud stream is read whole without a timer to rest by") {
  for (const char* call : {"timerfd_create", "timerfd_settime"})
    for (const char* mode : {"danger", "confined"}) {
      CAPTURE(call, mode);
      auto faulty = host_without(call, EMFILE, mode, "seq 1 400000");
      for (const auto& one : faulty.calls) {
        CHECK(one["outcome"] == "ok");
        CHECK(one["stdout"]["bytes"] == 2688895);
        CHECK(one["stdout"]["text"].get<std::string>().ends_with("399999\n400000\n"));
      }
    }
}

TEST_CASE("fault: a spill that fails at any step leaves the tail and a note") {
  struct Row {
    const char* call;
    int error;
    const char* note;
  };
  for (const auto& row : {Row{"mkdir", ENOSPC, "not spilled: cannot create a directory"},
                          Row{"mkdir", EROFS, "not spilled: cannot create a directory"},
                          Row{"flock", ENOLCK, "not spilled: "},
                          Row{"pwrite64", ENOSPC, "spilling ended after 0 bytes: ENOSPC"},
                          Row{"pwrite64", EIO, "spilling ended after 0 bytes: EIO"},
                          Row{"pwrite64", EDQUOT, "spilling ended after 0 bytes: EDQUOT"}})
    for (const char* mode : {"danger", "confined"}) {
      CAPTURE(row.call, row.error, mode);
      auto faulty = host_without(row.call, row.error, mode, "seq 1 1000");
      for (const auto& call : faulty.calls) {
        CHECK(call["outcome"] == "ok");
        CHECK(call["stdout"]["bytes"] == 3893);
        CHECK(call["stdout"]["text"].get<std::string>().ends_with("999\n1000\n"));
        CHECK_THAT(call["stdout"]["spillNote"].get<std::string>(), ContainsSubstring(row.note));
      }
    }
}

TEST_CASE("fault: signals that are refused leave a timeout that ends all the same") {
  // TERM does not arrive; the tree is ended by the leash, which needs no signal.
  auto faulty = host_without("kill", EPERM, "danger", "exec sleep 60", 1);
  CHECK(faulty.calls[0]["outcome"] == "timed-out");
  CHECK(faulty.calls[0]["durationMs"] < 30000);
  CHECK(faulty.left["descriptors"] == 0);
}

TEST_CASE("fault: a wait that is refused does not end the call early or twice") {
  auto faulty = host_without("waitid", EINTR, "danger", "true", 0);
  CHECK(faulty.left["descriptors"] == 0);
}

TEST_CASE("fault: a supervisor that is killed takes the command with it and is told of") {
  Scratch scratch;
  Rig rig({.cwd = scratch.path()});
  // After it was ready: the command kills what started it.
  BashRequest request{.command = "echo $$ > pid; kill -KILL $PPID; exec sleep 60"};
  request.policy = kDanger;
  auto result = rig.run(request);
  CHECK(result.outcome == BashOutcome::failed);
  CHECK(result.signal == SIGKILL);
  CHECK(result.sandbox.ran == true);
  std::string pid = read_file(scratch / "pid");
  pid = pid.substr(0, pid.find('\n'));
  CHECK(wait_until(
      rig.loop, [&] { return !alive(pid); }, 10s));
  CHECK(rig.bash("echo next").out.bytes == "next\n");
}

TEST_CASE("fault: a runner that is killed before and after it was ready is told apart") {
  Rig before;
  before.sandbox->report_with("kill -KILL $$");
  auto early = before.bash("true");
  CHECK(early.outcome == BashOutcome::runner_failed);
  CHECK(early.sandbox.ran == false);
  REQUIRE(early.error);
  CHECK_THAT(early.error->message, ContainsSubstring("SIGKILL"));
  Rig after;
  after.sandbox->report_with("echo '{\"status\":\"ready\"}' >&3; kill -KILL $$");
  auto late = after.bash("true");
  CHECK(late.outcome == BashOutcome::failed);
  CHECK(late.signal == SIGKILL);
  CHECK(late.sandbox.ran == true);
  CHECK_FALSE(late.error);
}

TEST_CASE("fault: a runner that holds its leash and does not answer is killed") {
  Scratch scratch;
  Rig rig({.cwd = scratch.path(), .grace_ms = 100});
  // It keeps its end of the channel and is deaf.
  rig.sandbox->report_with(
      "echo '{\"status\":\"ready\"}' >&3; trap '' TERM; echo $$ > pid; while :; do sleep 0.1; "
      "done");
  auto result = rig.run({.command = "true", .timeout_ms = 1000});
  CHECK(result.outcome == BashOutcome::timed_out);
  CHECK(result.signal == SIGKILL);
  CHECK(result.duration < 20s);
  std::string pid = read_file(scratch / "pid");
  CHECK_FALSE(alive(pid.substr(0, pid.find('\n'))));
}

// As a program on a dead file system would; the loop goes on, or the timeout would not come.
TEST_CASE("fault: a start that hangs ends with the timeout and leaves nothing") {
  for (const char* mode : {"danger", "confined"}) {
    CAPTURE(mode);
    auto faulty = host_without("execve", -10000, mode, "echo begun; exec sleep 30", 1);
    const auto& call = faulty.calls[0];
    CHECK(call["outcome"] == "timed-out");
    CHECK(call["durationMs"] >= 500);
    CHECK(call["durationMs"] < 9000);
    CHECK(call["sandbox"]["ran"] != true);
    CHECK(call["stdout"]["text"] == "");
    CHECK_FALSE(call.contains("notes"));
    CHECK(faulty.left["descriptors"] == 0);
  }
}

TEST_CASE("fault: a start that is slow is a call like any other") {
  auto faulty = host_without("execve", -200, "danger", "echo begun", 1);
  CHECK(faulty.calls[0]["outcome"] == "ok");
  CHECK(faulty.calls[0]["durationMs"] >= 200);
  CHECK(faulty.calls[0]["stdout"]["text"] == "begun\n");
}

TEST_CASE("fault: an executor that goes with calls in flight loses none and leaves none") {
  Rig rig;
  for (int round = 0; round < 50; ++round) {
    auto process = rig.start("sleep 5");
    auto policies = rig.policies;
    auto shell = std::make_shared<BashExecutor>(rig.loop, BashSandboxConfig{}, policies,
                                                [&rig] { return rig.sandbox; });
    BashRequest request{.command = "sleep 5"};
    if (round % 2) request.policy = kDanger;
    auto other = shell->start(shell->resolve(request), {});
    shell.reset();
    process.reset();
    other.reset();
  }
  rig.loop.drain();
  CHECK(children() == "");
}
