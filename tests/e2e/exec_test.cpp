// SPDX-License-Identifier: MIT
// `stockade exec` as a person or a script uses it.
#include <unistd.h>

#include "tests/e2e/world.hpp"

using namespace stockade::test;

TEST_CASE("exec: the command's streams pass through and its status is the status") {
  for_each_user("landlock", [](const World& world) {
    auto result = world.exec({}, "echo out; echo err >&2; exit 7");
    CHECK(result.status == 7);
    CHECK(result.out == "out\n");
    CHECK(result.err == "err\n");
  });
}

TEST_CASE("exec: output comes while the command runs") {
  World world("landlock", users().back());
  ProgramOptions options;
  options.timeout_ms = 4000;
  auto result = world.stockade({"exec", "--", "echo early; sleep 30"}, options);
  CHECK(result.timed_out);
  CHECK(result.out == "early\n");
}

TEST_CASE("exec: a denial has one line on stderr") {
  World world("landlock", users().back());
  auto result = world.exec({}, "echo x > f");
  CHECK(result.status == 1);
  CHECK_THAT(result.err, ContainsSubstring("stockade: denied: read-only mode"));
  CHECK(world.exec({}, "exit 0").err.empty());
}

TEST_CASE("exec: several words are a program and its arguments") {
  World world("landlock", users().back());
  auto result = world.stockade({"exec", "--", "printf", "%s|", "a b", "$HOME", "it's", ">f"});
  CHECK(result.out == "a b|$HOME|it's|>f|");
  CHECK(world.stockade({"exec", "--", "-e"}).status == 127);
}

TEST_CASE("exec: bad usage is 2 and names the nearest right word") {
  World world("landlock", users().back());
  auto mode = world.exec({"--mode", "workspace_write"}, "true");
  CHECK(mode.status == 2);
  CHECK_THAT(mode.err, ContainsSubstring("did you mean \"workspace-write\""));
  auto backend = world.exec({"--backend", "bwarp"}, "true");
  CHECK(backend.status == 2);
  CHECK_THAT(backend.err, ContainsSubstring("did you mean \"bwrap\""));
  CHECK(world.exec({"--timeout-ms", "0"}, "true").status == 2);
  CHECK(world.exec({"--timeout-ms", "-5"}, "true").status == 2);
  CHECK(world.exec({"--no-such-option"}, "true").status == 2);
  CHECK(world.stockade({"exec"}).status == 2);
  CHECK(world.stockade({}).status == 2);
  CHECK(world.stockade({"--help"}).status == 0);
}

TEST_CASE("exec: a signal to the host ends the command and leaves nothing") {
  World world("bwrap", users().back());
  std::string mark = "62." + std::to_string(getpid());
  std::string script = "\"$@\" & pid=$!; sleep 0.5; kill -TERM $pid; wait $pid; echo status=$?";
  ProgramOptions options;
  if (geteuid() == 0) options.uid = world.uid;
  options.cwd = world.workspace();
  for (const char* backend : {"bwrap", "landlock"}) {
    auto result = run_program({"bash", "-c", script, "bash", world.prefix + "/bin/stockade", "exec",
                               "--backend", backend, "--", "sleep " + mark},
                              options);
    CHECK(result.out == "status=143\n");
    CHECK(processes_with("sleep " + mark).empty());
  }
}

TEST_CASE("exec: the death of the host ends the command") {
  World world("bwrap", users().back());
  std::string mark = "63." + std::to_string(getpid());
  std::string script =
      "\"$@\" & pid=$!; sleep 0.5; kill -KILL $pid; wait $pid; sleep 0.2; echo done";
  ProgramOptions options;
  if (geteuid() == 0) options.uid = world.uid;
  options.cwd = world.workspace();
  for (const char* backend : {"bwrap", "landlock"}) {
    auto result = run_program({"bash", "-c", script, "bash", world.prefix + "/bin/stockade", "exec",
                               "--backend", backend, "--", "exec sleep " + mark},
                              options);
    CHECK(result.out == "done\n");
    CHECK(processes_with("sleep " + mark).empty());
  }
}

TEST_CASE("exec: a reader that goes away ends the command") {
  World world("landlock", users().back());
  ProgramOptions options;
  if (geteuid() == 0) options.uid = world.uid;
  options.cwd = world.workspace();
  options.timeout_ms = 10000;
  auto result = run_program(
      {"bash", "-c", world.prefix + "/bin/stockade exec -- yes | head -n 1; echo ${PIPESTATUS[0]}"},
      options);
  CHECK_FALSE(result.timed_out);
  CHECK(result.out == "y\n141\n");
}

TEST_CASE("exec: much output is kept to its tail and spilled whole") {
  World world("landlock", users().back());
  auto result = world.json("read-only", "seq 1 100000");
  CHECK(result["stdout"]["truncated"] == true);
  CHECK(result["stdout"]["bytes"] == 588895);
  std::string tail = result["stdout"]["text"];
  CHECK(tail.size() == 64000);
  CHECK(tail.ends_with("99999\n100000\n"));
  std::string spilled = read_file(result["stdout"]["spillPath"]);
  CHECK(spilled.size() == 588895);
  CHECK(spilled.starts_with("1\n2\n3\n"));
  unlink(result["stdout"]["spillPath"].get<std::string>().c_str());
  std::string directory = result["stdout"]["spillPath"];
  rmdir(directory.substr(0, directory.rfind('/')).c_str());
}

TEST_CASE("exec: bytes that are no text come as valid JSON") {
  World world("landlock", users().back());
  auto result = world.json("read-only", "printf 'a\\377\\0b\\033[31m\\r\\n'");
  CHECK(result["stdout"]["text"] == std::string("a\xEF\xBF\xBD\0b\x1b[31m\r\n", 13));
  CHECK(result["stdout"]["bytes"] == 11);
}

TEST_CASE("exec: a denial far before the end of the output still counts") {
  for_each_user("bwrap", [](const World& world) {
    auto result = world.json("read-only", "touch /etc/zz; seq 1 200000 >&2; exit 1");
    CHECK(result["outcome"] == "denied");
    CHECK(result["stderr"]["truncated"] == true);
    std::string path = result["stderr"]["spillPath"];
    unlink(path.c_str());
    rmdir(path.substr(0, path.rfind('/')).c_str());
  });
}

BACKEND_TEST("a TERM trap of the command runs to its end before the kill") {
  auto result = world.json("workspace-write",
                           "trap 'sleep 0.3; echo cleaned > trap; exit 7' TERM; echo ready; "
                           "while :; do sleep 0.02; done",
                           {"--timeout-ms", "400"});
  CHECK(result["outcome"] == "timed-out");
  CHECK(result["exitCode"] == 7);
  CHECK(read_file(world.workspace() + "/trap") == "cleaned\n");
}

namespace {

ProgramResult run_script(const World& world, const std::string& script, int timeout_ms = 20000) {
  ProgramOptions options;
  if (geteuid() == 0) options.uid = world.uid;
  options.cwd = world.workspace();
  options.timeout_ms = timeout_ms;
  return run_program(
      {"bash", "-c", "S=$1 B=$2; " + script, "bash", world.prefix + "/bin/stockade", world.backend},
      options);
}

}  // namespace

BACKEND_TEST("a reader that stalls longer than the drain limit gets every byte") {
  auto result = run_script(
      world, "$S exec --backend $B -- 'head -c 3000000 /dev/zero' | { sleep 1; wc -c; }");
  CHECK(result.out == "3000000\n");
}

BACKEND_TEST("closed standard descriptors and an ignored SIGCHLD do no harm") {
  for (const char* closed : {"<&-", "2>&-", "<&- 2>&-"}) {
    auto result = run_script(world, std::string("$S exec --backend $B -- 'echo hi' ") + closed);
    INFO(closed);
    CHECK(result.status == 0);
    CHECK(result.out == "hi\n");
  }
  CHECK(run_script(world, "$S exec --backend $B -- 'exit 3' >&- <&- 2>&-").status == 3);
  auto result = run_script(world, "trap '' CHLD; $S exec --backend $B -- 'echo hi; exit 4'");
  CHECK(result.status == 4);
  CHECK(result.out == "hi\n");
}

TEST_CASE("exec: a host that is told to stop does not wait for a stalled reader") {
  World world("landlock", users().back());
  for (const char* command : {"exec --", "exec --json --"}) {
    // Nobody reads the pipe; the host gets TERM after a second and must be gone by itself.
    auto result = run_script(
        world, std::string("mkfifo p; sleep 8 < p & exec 7> p; head -c 65536 /dev/zero >&7; $S ") +
                   command +
                   " 'yes | head -c 3000000' >&7 & pid=$!; sleep 1.5; kill -TERM $pid; "
                   "for i in $(seq 40); do kill -0 $pid 2>/dev/null || { echo gone; break; }; "
                   "sleep 0.1; done; kill %1; rm p");
    CHECK_THAT(result.out, ContainsSubstring("gone"));
  }
}

BACKEND_TEST("a host that is told to stop still gives the result of its call") {
  constexpr const char* kCall =
      R"({"id": 1, "tool": "bash", "arguments": {"command": "touch up; sleep 30"}})";
  for (const std::string& host :
       {std::string("exec --json --backend $B --mode workspace-write -- 'touch up; sleep 30'"),
        std::string("run --backend $B --mode workspace-write - <<<'") + kCall + "'"}) {
    CAPTURE(host);
    auto result = run_script(
        world, "rm -f up; $S " + host +
                   " >out & pid=$!; for i in $(seq 400); do [ -e up ] && break; sleep 0.05; done; "
                   "kill -TERM $pid; wait $pid; echo $?; cat out");
    REQUIRE_THAT(result.out, Catch::Matchers::StartsWith("143\n"));
    auto line = nlohmann::json::parse(result.out.substr(4));
    CHECK((line.contains("outcome") ? line : line["structuredContent"])["outcome"] == "aborted");
  }
}

TEST_CASE("exec: what cannot be written is no success") {
  World world("landlock", users().back());
  CHECK(run_script(world, "$S exec --json -- true > /dev/full").status == 125);
}

TEST_CASE("exec: a command that uses up its user's processes does not end the host") {
  World world("bwrap", 1000);
  if (geteuid() != 0) {
    SUCCEED("needs a user whose limit can be set low");
    return;
  }
  auto result = run_script(world,
                           "prlimit --nproc=40 $S exec --json --backend $B -- "
                           "'i=0; while [ $i -lt 45 ]; do sleep 1 & i=$((i+1)); done 2>/dev/null; "
                           "printf %0200000d 1; exit 0' | wc -l");
  CHECK(result.out == "1\n");
}
