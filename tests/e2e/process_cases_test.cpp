// SPDX-License-Identifier: MIT
// How a call ends, in cases that this kind of software gets wrong: what stays behind, what is cut
// short, what is waited for.
#include <unistd.h>

#include "tests/e2e/world.hpp"

using namespace stockade::test;

namespace {

const std::vector<std::string> kModes{"read-only", "workspace-write", "danger-full-access"};

// A duration that is on no other process's command line.
std::string mark(const World& world, int number) {
  return std::to_string(1000 + number) + "." + std::to_string(getpid()) + std::to_string(world.uid);
}

std::string config(const World& world, const std::string& shell) {
  std::string path = world.workspace() + "/config.json";
  write_file(path, R"({"plugins": [{"plugin": "sandbox"}, {"plugin": "sandbox-local"},
    {"plugin": "bash-sandbox", "config": )" +
                       shell + "}]}");
  return path;
}

}  // namespace

BACKEND_TEST("a background child does not hold the call and ends with it") {
  for (const auto& mode : kModes) {
    INFO(mode);
    const std::string sleep = "sleep " + mark(world, 1);
    auto result = world.json(mode, sleep + " & echo done", {"--timeout-ms", "60000"});
    CHECK(result["outcome"] == "ok");
    CHECK(result["timedOut"] == false);
    CHECK(result["stdout"]["text"] == "done\n");
    CHECK(result["durationMs"] < 20000);
    CHECK(processes_with(sleep).empty());
  }
}

BACKEND_TEST("a filter on the command's output does not hold the call") {
  const std::string sleep = "sleep " + mark(world, 2);
  for (const char* mode : {"workspace-write", "danger-full-access"}) {
    INFO(mode);
    auto result = world.json(mode, "exec > >(tee -a l) 2>&1; " + sleep + " & echo x",
                             {"--timeout-ms", "60000"});
    CHECK(result["outcome"] == "ok");
    CHECK(result["stdout"]["text"] == "x\n");
    if (mode == std::string("workspace-write")) CHECK(read_file(world.workspace() + "/l") == "x\n");
    CHECK(result["durationMs"] < 20000);
    CHECK(processes_with(sleep).empty());
  }
}

BACKEND_TEST("nothing outlives a timeout wherever it hides") {
  const std::string sleep = "sleep " + mark(world, 3);
  const std::string path = config(world, R"({"graceMs": 500})");
  const std::string hidden[] = {// In a session of its own, deaf to TERM, and writing without end.
                                "setsid bash -c 'trap \"\" TERM; for i in {1..400}; do echo t; " +
                                    sleep + " & sleep 0.05; done' & ",
                                // Twice away from its parent, its streams closed.
                                "(setsid bash -c '(trap \"\" TERM HUP; exec " + sleep +
                                    ") >/dev/null 2>&1 </dev/null &' &); ",
                                // With an environment of its own.
                                "env -i setsid /bin/" + sleep + " & ",
                                // In a group of its own, by job control.
                                "set -m; " + sleep + " & "};
  for (const auto& mode : kModes)
    for (const auto& what : hidden) {
      INFO(mode << ": " << what);
      auto result = world.json(mode, what + "sleep 0.3; echo text; " + sleep,
                               {"--timeout-ms", "1000", "--config", path});
      CHECK(result["outcome"] == "timed-out");
      CHECK_THAT(result["stdout"]["text"].get<std::string>(), ContainsSubstring("text\n"));
      CHECK(result["durationMs"] < 15000);
      CHECK_FALSE(result.contains("notes"));
      CHECK(processes_with(sleep).empty());
    }
}

BACKEND_TEST("nothing outlives the command itself wherever it hides") {
  const std::string sleep = "sleep " + mark(world, 4);
  for (const auto& mode : kModes) {
    INFO(mode);
    auto result = world.json(mode, "(setsid bash -c '(trap \"\" TERM HUP; exec " + sleep +
                                       ") >/dev/null 2>&1 </dev/null &' &); env -i setsid /bin/" +
                                       sleep + " & sleep 0.3; exit 3");
    CHECK(result["outcome"] == "failed");
    CHECK(result["exitCode"] == 3);
    CHECK(processes_with(sleep).empty());
  }
}

BACKEND_TEST("the death of the host ends everything that it started") {
  const std::string sleep = "sleep " + mark(world, 5);
  ProgramOptions options;
  if (geteuid() == 0) options.uid = world.uid;
  options.cwd = world.workspace();
  for (const auto& mode : kModes) {
    INFO(mode);
    auto result = run_program(
        {"bash", "-c",
         "rm -f out; \"$@\" >out & pid=$!; for i in {1..500}; do [ -s out ] && break; sleep 0.02; "
         "done; cat "
         "out; kill -KILL $pid; wait $pid",
         "bash", world.prefix + "/bin/stockade", "exec", "--mode", mode, "--backend", world.backend,
         "--",
         "setsid bash -c 'trap \"\" TERM HUP; exec " + sleep + "' & sleep 0.3; echo up; " + sleep},
        options);
    CHECK(result.out == "up\n");
    // The runner sees it by itself, a moment later.
    bool gone = false;
    for (int i = 0; i < 500 && !gone; ++i) {
      gone = processes_with(sleep).empty();
      if (!gone) usleep(20000);
    }
    CHECK(gone);
  }
}

BACKEND_TEST("a command may clean up after TERM every time") {
  const std::string path = config(world, R"({"graceMs": 20000})");
  for (const char* mode : {"workspace-write", "danger-full-access"})
    for (int round = 0; round < 5; ++round) {
      INFO(mode << ", round " << round);
      const std::string file = world.workspace() + "/t";
      unlink(file.c_str());
      auto result = world.json(mode,
                               "trap 'sleep 0.2; echo cleanup >> '$PWD'/t; exit 7' TERM; echo "
                               "ready; while :; do sleep 0.05; done",
                               {"--timeout-ms", "500", "--config", path});
      CHECK(result["outcome"] == "timed-out");
      CHECK(result["stdout"]["text"] == "ready\n");
      CHECK(result["exitCode"] == 7);
      CHECK(result["signal"].is_null());
      CHECK(read_file(file) == "cleanup\n");
    }
}

BACKEND_TEST("death by a signal is never success and an exit code is never a signal") {
  struct Row {
    const char* command;
    int status;
    const char* signal;
  };
  for (const auto& mode : kModes)
    for (const auto& row :
         {Row{"kill -9 $$", 137, "SIGKILL"}, Row{"kill -SEGV $$", 139, "SIGSEGV"},
          Row{"kill -TERM $$", 143, "SIGTERM"}, Row{"exec bash -c 'kill -9 $$'", 137, "SIGKILL"}}) {
      INFO(mode << ": " << row.command);
      auto result = world.json(mode, row.command);
      CHECK(result["outcome"] == "failed");
      CHECK(result["timedOut"] == false);
      CHECK(result["status"] == row.status);
      CHECK(result["signal"] == row.signal);
      CHECK(result["exitCode"].is_null());
    }
  for (const auto& mode : kModes) {
    auto result = world.json(mode, "exit 137");
    CHECK(result["exitCode"] == 137);
    CHECK(result["signal"].is_null());
    auto shell = world.json(mode, "bash -c 'kill -9 $$'; exit $?");
    CHECK(shell["exitCode"] == 137);
    CHECK(shell["signal"].is_null());
  }
}

BACKEND_TEST("no descriptor of the host reaches a command") {
  const std::string leak = world.outside_file("leak", "");
  const std::string script = "ulimit -n 4096; exec 9<>" + leak + " 8<" + world.outside() +
                             " 2048<>" + leak + "; exec \"$@\"";
  ProgramOptions options;
  if (geteuid() == 0) options.uid = world.uid;
  options.cwd = world.workspace();
  for (const auto& mode : kModes) {
    INFO(mode);
    auto result =
        run_program({"bash", "-c", script, "bash", world.prefix + "/bin/stockade", "exec", "--mode",
                     mode, "--backend", world.backend, "--",
                     "echo pwn >&9; echo pwn >&2048; ls /proc/self/fd/8/; ls /proc/self/fd; "
                     "(ls /proc/self/fd & wait)"},
                    options);
    CHECK(result.out == "0\n1\n2\n3\n0\n1\n2\n3\n");  // 3 is the directory that `ls` reads
    CHECK(read_file(leak).empty());
  }
}
