// SPDX-License-Identifier: MIT
#include "bash-sandbox/executor.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "bash-sandbox/command_line.hpp"
#include "framework/config.hpp"
#include "framework/fd.hpp"
#include "tests/bash-sandbox/rig.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using namespace std::chrono_literals;
using stockade::test::alive;
using stockade::test::exists;
using stockade::test::kDanger;
using stockade::test::read_file;
using stockade::test::Rig;
using stockade::test::run_for;
using stockade::test::Scratch;
using stockade::test::thrown_by;
using stockade::test::wait_until;
using stockade::test::write_file;

namespace {

using Words = std::vector<std::string>;

std::string first_word(const std::string& path) {
  std::string text = read_file(path);
  return text.substr(0, text.find('\n'));
}

class RecordingSink final : public OutputSink {
 public:
  void on_output(Stream stream, std::span<const char> bytes) override {
    (stream == Stream::output ? out : err).append(bytes.data(), bytes.size());
  }
  bool full(Stream) override { return closed; }
  void on_resume(std::function<void(Stream)> function) override { resume = std::move(function); }

  std::string out;
  std::string err;
  bool closed = false;
  std::function<void(Stream)> resume;
};

}  // namespace

// ---- the call path

TEST_CASE("executor: the provider gets the command as it is and the resolved policy") {
  Scratch scratch;
  Rig rig({.cwd = scratch.path()}, {SandboxMode::read_only, "/no-such-ws"});
  auto result = rig.bash("echo 'a b' \"c'd\"");
  CHECK(rig.sandbox->command == Words{"bash", "-c", "--", "echo 'a b' \"c'd\""});
  CHECK(rig.sandbox->policy->mode == ConfinedSandboxMode::read_only);
  // The executor's directory never becomes the boundary.
  CHECK(rig.sandbox->policy->workspace_root == "/no-such-ws");
  CHECK(rig.sandbox->working_directory == scratch.path());
  CHECK(result.out.bytes == "a b c'd\n");
  CHECK(result.outcome == BashOutcome::ok);
  CHECK(result.exit_code == 0);
  CHECK(result.sandbox.mode == SandboxMode::read_only);
  CHECK(result.sandbox.backend == "fake");
  CHECK(result.sandbox.enforcement == SandboxEnforcement::full);
  CHECK_FALSE(result.sandbox.denied);
}

TEST_CASE("executor: the argv of the provider is spawned as it is and asked for at each call") {
  Rig rig;
  rig.sandbox->answer.argv = {"env", "WRAPPED=a  b"};
  CHECK(rig.bash("echo \"$WRAPPED\"").out.bytes == "a  b\n");
  CHECK(rig.sandbox->calls == 1);
  auto process = rig.start("echo \"$WRAPPED\"");
  CHECK(rig.sandbox->calls == 2);
  rig.settle(*process);
  CHECK(process->read().output == "a  b\n");
  rig.sandbox->answer.argv = {"env", "WRAPPED=new"};
  CHECK(rig.bash("echo \"$WRAPPED\"").out.bytes == "new\n");
}

TEST_CASE("executor: an explicit policy is used whole and for that call only") {
  Rig rig({}, {SandboxMode::read_only, "/no-such-default"});
  CHECK(rig.shell->sandbox_mode() == SandboxMode::read_only);
  BashRequest request{.command = "true"};
  request.policy = {SandboxMode::workspace_write, "/no-such-own", std::nullopt};
  auto result = rig.run(request);
  CHECK(rig.sandbox->policy->mode == ConfinedSandboxMode::workspace_write);
  CHECK(rig.sandbox->policy->workspace_root == "/no-such-own");
  CHECK(result.sandbox.mode == SandboxMode::workspace_write);
  rig.bash("true");
  CHECK(rig.sandbox->policy->mode == ConfinedSandboxMode::read_only);
  CHECK(rig.sandbox->policy->workspace_root == "/no-such-default");
}

TEST_CASE("executor: what the provider throws is thrown on and nothing is spawned") {
  Scratch scratch;
  Rig rig;
  rig.sandbox->error = Error("SANDBOX_UNAVAILABLE", "none here", "op");
  std::string command = "touch " + (scratch / "ran");
  auto ran = thrown_by([&] { rig.bash(command); });
  CHECK(ran.code == "SANDBOX_UNAVAILABLE");
  CHECK(ran.text == "none here");
  CHECK(ran.operand == "op");
  auto started = thrown_by([&] { rig.start(command); });
  CHECK(started.code == "SANDBOX_UNAVAILABLE");
  run_for(rig.loop, 100ms);
  CHECK_FALSE(exists(scratch / "ran"));
}

TEST_CASE("executor: danger-full-access never asks the provider and is never denied") {
  Rig rig;
  rig.sandbox->error = Error("ASKED", "asked");
  BashRequest request{.command = "echo 'x: Permission denied' >&2; exit 1"};
  request.policy = kDanger;
  auto result = rig.run(request);
  CHECK(rig.sandbox->calls == 0);
  CHECK(result.outcome == BashOutcome::failed);
  CHECK(result.exit_code == 1);
  CHECK_FALSE(result.sandbox.denied);
  CHECK(result.sandbox.mode == SandboxMode::danger_full_access);
  CHECK_FALSE(result.sandbox.backend);
  CHECK_FALSE(result.sandbox.enforcement);
  CHECK(result.sandbox.ran == true);
}

// ---- requests and config

TEST_CASE("executor: a request that says nothing has the documented defaults") {
  char cwd[4096];
  REQUIRE(getcwd(cwd, sizeof cwd));
  Rig rig;
  auto spec = rig.shell->resolve({.command = "true"});
  CHECK(spec.workdir == cwd);
  CHECK(spec.timeout == 120000ms);
  CHECK(spec.stdout_max_bytes == 64000);
  CHECK(spec.stderr_max_bytes == 64000);
  CHECK_FALSE(spec.input);
  CHECK(spec.environment.empty());
  CHECK(spec.policy.mode == SandboxMode::read_only);
  BashSandboxConfig config;
  CHECK(config.max_timeout_ms == 600000);
  CHECK(config.max_spill_bytes == 67108864);
  CHECK(config.grace_ms == 3000);
}

TEST_CASE("executor: a timeout is capped by the maximum wherever it comes from") {
  Rig rig({.cwd = "", .timeout_ms = 5000, .max_timeout_ms = 2000});
  CHECK(rig.shell->resolve({.command = "true", .timeout_ms = 99999}).timeout == 2000ms);
  CHECK(rig.shell->resolve({.command = "true"}).timeout == 2000ms);
  CHECK(rig.shell->resolve({.command = "true", .timeout_ms = 1e300}).timeout == 2000ms);
  CHECK(rig.shell->resolve({.command = "true", .timeout_ms = 100}).timeout == 100ms);
  // Never rounded down to one that ends the command at once.
  CHECK(rig.shell->resolve({.command = "true", .timeout_ms = 0.2}).timeout == 1ms);
}

TEST_CASE("executor: a number that is not positive and finite is refused by name") {
  Rig rig;
  for (double value : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    auto timeout = thrown_by([&] { rig.shell->resolve({.command = "true", .timeout_ms = value}); });
    CHECK(timeout.code == "REQUEST_INVALID");
    CHECK(timeout.text == "bash-sandbox: request.timeoutMs must be a positive finite number");
    auto bytes =
        thrown_by([&] { rig.shell->resolve({.command = "true", .stdout_max_bytes = value}); });
    CHECK(bytes.code == "REQUEST_INVALID");
    CHECK(bytes.text == "bash-sandbox: request.stdoutMaxBytes must be a positive finite number");
  }
}

TEST_CASE("executor: a config out of range is refused with its key") {
  auto load = [](const std::string& key, const std::string& value) {
    return thrown_by([&] {
      std::string text = "{\"" + key + "\": " + value + "}";
      check_bash_sandbox_config(read_config<BashSandboxConfig>(parse_config(text, "t"), "t"));
    });
  };
  for (std::string key : {"timeoutMs", "maxTimeoutMs", "graceMs", "drainMs", "maxOutputBytes",
                          "maxSpillBytes", "maxSpillTotalBytes", "maxCalls", "maxQueuedCalls"}) {
    CAPTURE(key);
    CHECK(load(key, "1").code.empty());
    for (const char* value : {"0", "-1", "1.5", "\"1000\"", "null", "1e12"}) {
      CAPTURE(value);
      CHECK(load(key, value).code == "CONFIG_INVALID");
      CHECK(load(key, value).operand == "$." + key);
    }
    CHECK_THAT(load(key, "0").text,
               ContainsSubstring("bash-sandbox: " + key + " must be a positive finite number"));
  }
  CHECK(load("graceMs", "2147483647").code.empty());
  CHECK_THAT(load("graceMs", "2147483648").text,
             ContainsSubstring("bash-sandbox: graceMs must be no greater than 2147483647"));
  CHECK(load("maxSpillBytes", "2147483648").code.empty());
  CHECK_THAT(load("timeoutMS", "5").text, ContainsSubstring("did you mean \"timeoutMs\""));
}

TEST_CASE("executor: a NUL byte is refused before anything is spawned") {
  Rig rig;
  auto thrown = thrown_by([&] { rig.shell->resolve({.command = std::string("echo a\0b", 8)}); });
  CHECK(thrown.code == "REQUEST_INVALID");
  CHECK(thrown.operand == "command");
  CHECK_THAT(thrown.text, ContainsSubstring("NUL"));
}

TEST_CASE("executor: a command longer than one argument of the kernel runs as any other") {
  Rig rig;
  for (bool danger : {false, true})
    for (std::size_t size : {131071U, 131072U, 131073U, 262142U, 262143U, 1000000U}) {
      CAPTURE(danger, size);
      // What comes last is done last, standard input is the command's, `$0` and the parameters are
      // those of any command, a heredoc is exact, and a character may lie across a border.
      std::string command = "read -r line; echo \"$line $0 $#\"; cat <<'END'\n  a\"$b\nEND\nx='";
      std::string end = "'; echo ${#x}; compgen -v __stockade; printf %s \"${x: -1}\"; exit 7";
      std::string text = "ab";
      while (command.size() + text.size() + end.size() + 2 <= size) text += "é";
      text.insert(0, size - command.size() - text.size() - end.size(), 'a');
      command += text + end;
      REQUIRE(command.size() == size);
      BashRequest request{.command = command, .input = "from input\n"};
      request.environment = {{"LC_ALL", "C.UTF-8"}};
      if (danger) request.policy = kDanger;
      auto result = rig.run(request);
      CHECK(result.exit_code == 7);
      CHECK(result.err.bytes.empty());
      std::size_t characters = 0;
      for (char c : text) characters += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
      CHECK(result.out.bytes ==
            "from input bash 0\n  a\"$b\n" + std::to_string(characters) + "\n" + "é");
    }
}

TEST_CASE("executor: a long command means what a short one means") {
  Rig rig;
  const std::string padding(140000, 'x');
  for (const char* command :
       {"# comment", "echo a", "false", "exit 3", "kill -9 $$", "echo a; )", "no-such-command",
        "echo \"$BASH_VERSION\" | head -c 1; echo $LINENO >&2", "set -e; false; echo no",
        "trap 'echo bye' EXIT; exit 4", "cat <<E\nlast line\nE", "echo 'unfinished", "\n\nnope",
        "echo $-"}) {
    CAPTURE(command);
    auto brief = rig.bash(command);
    auto lengthy = rig.bash(std::string(command) + "\n#" + padding);
    CHECK(lengthy.exit_code == brief.exit_code);
    CHECK(lengthy.signal == brief.signal);
    CHECK(lengthy.out.bytes == brief.out.bytes);
    // bash names where a syntax error was read, `-c` or `eval`.
    auto error = [](std::string text) {
      for (const char* source : {"bash: -c: ", "bash: eval: "})
        if (text.starts_with(source)) text = "bash: " + text.substr(std::string(source).size());
      return text.substr(0, text.find('\n'));
    };
    CHECK(error(lengthy.err.bytes) == error(brief.err.bytes));
  }
}

TEST_CASE("executor: a command beyond what the kernel takes in all is refused before anything") {
  Rig rig;
  auto most = most_command_line_bytes();
  auto thrown = thrown_by([&] { rig.bash("true #" + std::string(most, 'x')); });
  CHECK(thrown.code == "REQUEST_INVALID");
  CHECK(thrown.operand == "command");
  CHECK_THAT(thrown.text, ContainsSubstring(" bytes"));
  // The environment counts.
  BashRequest request{.command = "true"};
  for (int i = 0; i < 64; ++i)
    request.environment["LARGE_" + std::to_string(i)] = std::string(120000, 'x');
  CHECK(thrown_by([&] { rig.run(request); }).code == "REQUEST_INVALID");
  CHECK(rig.sandbox->calls == 0);
  CHECK(rig.bash("echo next").out.bytes == "next\n");
}

TEST_CASE("executor: a command is text for bash and never an option of it") {
  Rig rig;
  for (const char* command : {"-e", "--version", "-c"}) {
    auto result = rig.bash(command);
    CHECK(result.exit_code == 127);
    CHECK_THAT(result.err.bytes, ContainsSubstring("command not found"));
  }
  BashRequest danger{.command = "-e"};
  danger.policy = kDanger;
  CHECK(rig.run(danger).exit_code == 127);
}

TEST_CASE("executor: odd texts mean what bash says they mean") {
  struct Row {
    std::string command;
    std::string out;
  };
  Rig rig;
  for (const auto& row : {
           Row{"cat <<E\na 'b' \"c\" `echo d`\nE", "a 'b' \"c\" d\n"},
           Row{"echo a # comment", "a\n"},
           Row{"echo a\\", "a\\\n"},
           Row{"   \n\t ", ""},
           Row{"echo '$HOME' \"`echo x`\" $(echo y)", "$HOME x y\n"},
           Row{"echo ünï 😀", "ünï 😀\n"},
           Row{"echo one; echo two &&\necho three", "one\ntwo\nthree\n"},
       }) {
    CAPTURE(row.command);
    auto result = rig.bash(row.command);
    CHECK(result.out.bytes == row.out);
    CHECK(result.exit_code == 0);
  }
}

TEST_CASE("executor: a working directory is relative to the executor's own") {
  Scratch scratch;
  std::filesystem::create_directories(scratch / "sub/sp ace");
  Rig rig({.cwd = scratch.path()});
  CHECK(rig.bash("pwd").out.bytes == scratch.path() + "\n");
  CHECK(rig.run({.command = "pwd", .workdir = "sub"}).out.bytes == (scratch / "sub") + "\n");
  CHECK(rig.run({.command = "pwd", .workdir = "sub/sp ace"}).out.bytes ==
        (scratch / "sub/sp ace") + "\n");
  CHECK(rig.run({.command = "pwd", .workdir = "/usr"}).out.bytes == "/usr\n");
  CHECK(rig.run({.command = "pwd", .workdir = "sub/.."}).out.bytes == scratch.path() + "\n");
}

TEST_CASE("executor: a directory whose name is odd is entered as it is") {
  Scratch scratch;
  Rig rig({.cwd = scratch.path()});
  for (std::string name : {"nl\nx", "quo\"te'", "-dash", "a:b", "\xff", "$(touch p)", "*"}) {
    std::filesystem::create_directory(scratch / name);
    CHECK(rig.run({.command = "touch \"$PWD/t\"", .workdir = name}).outcome == BashOutcome::ok);
    CHECK(exists(scratch / name + "/t"));
  }
  CHECK_FALSE(exists(scratch / "p"));
}

// ---- what the command has

TEST_CASE("executor: input is given as bytes and without one there is the null device") {
  Rig rig;
  std::string bytes("piped\0\xff\n", 8);
  CHECK(rig.run({.command = "cat", .input = bytes}).out.bytes == bytes);
  CHECK(rig.run({.command = "cat; readlink /proc/self/fd/0"}).out.bytes == "/dev/null\n");
  CHECK(rig.run({.command = "cat", .input = ""}).out.bytes.empty());
}

TEST_CASE("executor: input that the command does not read is no failure") {
  Rig rig;
  auto result = rig.run({.command = "exit 7", .input = std::string(1 << 20, 'x')});
  CHECK(result.exit_code == 7);
  CHECK(result.outcome == BashOutcome::failed);
  std::string all(1 << 20, 'y');
  CHECK(rig.run({.command = "wc -c", .input = all}).out.bytes == "1048576\n");
}

TEST_CASE("executor: explicit variables reach the command and secrets of the host do not") {
  Scratch scratch;
  write_file(scratch / "hook", "echo HOOK\n");
  setenv("X_API_KEY", "s3cr3t", 1);
  setenv("BASH_ENV", (scratch / "hook").c_str(), 1);
  setenv("BASH_FUNC_ls%%", "() { echo HIJACK; }", 1);
  Rig rig;
  BashRequest request{.command = "echo \"[$SEAM][$X_API_KEY][$BASH_ENV][$TERM][$PAGER]\"; ls -d /"};
  request.environment = {{"SEAM", "a=b\n"}};
  auto result = rig.run(request);
  unsetenv("X_API_KEY");
  unsetenv("BASH_ENV");
  unsetenv("BASH_FUNC_ls%%");
  CHECK(result.out.bytes == "[a=b\n][][][dumb][cat]\n/\n");
}

TEST_CASE("executor: a hook for the runner is refused and nothing is spawned") {
  Scratch scratch;
  write_file(scratch / "hook", "echo hook >> '" + (scratch / "log") + "'\n");
  Rig rig;
  rig.sandbox->run_with("echo runner >> '" + (scratch / "log") + "'; exec \"$@\"");
  BashRequest request{.command = "true"};
  request.environment = {{"BASH_ENV", scratch / "hook"}};
  CHECK(thrown_by([&] { rig.run(request); }).code == "ENVIRONMENT_INVALID");
  CHECK_FALSE(exists(scratch / "log"));
}

TEST_CASE("executor: a variable that no block can hold is refused and nothing is spawned") {
  Rig rig;
  BashRequest request{.command = "true"};
  request.environment = {{"A=B", "x"}};
  CHECK(thrown_by([&] { rig.run(request); }).code == "ENVIRONMENT_INVALID");
  CHECK(rig.sandbox->calls == 0);
}

TEST_CASE("executor: standard streams can be opened by name") {
  Rig rig;
  auto result = rig.bash(
      "echo first; echo o > /dev/stdout; echo e > /dev/stderr; echo t | tee /dev/stderr;"
      " cat < /dev/stdin; diff <(echo a) <(echo a) && cat <<< h; : > /dev/null");
  CHECK(result.exit_code == 0);
  CHECK(result.out.bytes == "first\no\nt\nh\n");
  CHECK(result.err.bytes == "e\nt\n");
}

TEST_CASE("executor: the command has three descriptors and no other") {
  Scratch scratch;
  Fd leak(open((scratch / "leak").c_str(), O_WRONLY | O_CREAT, 0644));
  Fd high(fcntl(leak.get(), F_DUPFD, 200));
  REQUIRE(high);
  Rig rig;
  CHECK(rig.bash("ls /proc/self/fd").out.bytes == "0\n1\n2\n3\n");
  rig.sandbox->report_with("echo '{\"status\":\"ready\"}' >&3; exec 3>&-; exec \"$@\"");
  CHECK(rig.bash("ls /proc/self/fd").out.bytes == "0\n1\n2\n3\n");
  CHECK(rig.bash("echo x >&" + std::to_string(high.get())).outcome == BashOutcome::failed);
  CHECK(read_file(scratch / "leak").empty());
}

TEST_CASE("executor: a broken pipe ends a command as anywhere else") {
  Rig rig;
  CHECK(rig.bash("yes | head -1; echo ${PIPESTATUS[0]}").out.bytes == "y\n141\n");
}

// ---- how it ends

TEST_CASE("executor: an exit code and a signal of the command itself are told apart") {
  Rig rig;
  auto code = rig.bash("exit 137");
  CHECK(code.exit_code == 137);
  CHECK_FALSE(code.signal);
  CHECK(code.outcome == BashOutcome::failed);
  for (int signal : {SIGTERM, SIGKILL, SIGSEGV}) {
    auto killed = rig.bash("ulimit -c 0; kill -" + std::to_string(signal) + " $$");
    CHECK(killed.signal == signal);
    CHECK_FALSE(killed.exit_code);
    CHECK(killed.outcome == BashOutcome::failed);
    CHECK_FALSE(killed.timed_out);
    CHECK_FALSE(killed.aborted);
  }
}

TEST_CASE("executor: a timeout ends the command with TERM and says how long it was") {
  Rig rig;
  auto result = rig.run({.command = "echo before; sleep 60", .timeout_ms = 300});
  CHECK(result.outcome == BashOutcome::timed_out);
  CHECK(result.timed_out);
  CHECK_FALSE(result.aborted);
  CHECK(result.timeout == 300ms);
  CHECK(result.signal == SIGTERM);
  CHECK(result.duration >= 300ms);
  CHECK(result.duration < 20s);
  CHECK(result.out.bytes == "before\n");
  CHECK_FALSE(result.error);
}

TEST_CASE("executor: a command may clean up in the grace after TERM") {
  Scratch scratch;
  Rig rig({.cwd = "", .grace_ms = 20000});
  auto result = rig.run({.command = "trap 'echo cleanup > " + (scratch / "t") +
                                    "; exit 7' TERM; echo ready; while :; do sleep 0.05; done",
                         .timeout_ms = 500});
  CHECK(result.outcome == BashOutcome::timed_out);
  CHECK(result.exit_code == 7);
  CHECK_FALSE(result.signal);
  CHECK(read_file(scratch / "t") == "cleanup\n");
}

TEST_CASE("executor: a command that ignores TERM is killed after the grace") {
  Rig rig({.cwd = "", .grace_ms = 300});
  auto result =
      rig.run({.command = "trap '' TERM; while :; do sleep 0.05; done", .timeout_ms = 1500});
  CHECK(result.outcome == BashOutcome::timed_out);
  CHECK(result.signal == SIGKILL);
  CHECK(result.duration >= 1800ms);
  CHECK(result.duration < 20s);
}

TEST_CASE("executor: an abort ends the command and is told from a timeout") {
  Rig rig;
  AbortController controller;
  Timer timer(rig.loop);
  timer.start(200ms, [&] { controller.abort("enough"); });
  auto result = rig.run({.command = "sleep 60"}, controller.signal());
  CHECK(result.outcome == BashOutcome::aborted);
  CHECK(result.aborted);
  CHECK_FALSE(result.timed_out);
  CHECK(result.signal == SIGTERM);
  CHECK(result.duration < 20s);
}

TEST_CASE("executor: the first cause of an end stands") {
  Rig rig({.cwd = "", .grace_ms = 500});
  AbortController controller;
  Timer timer(rig.loop);
  timer.start(500ms, [&] { controller.abort(); });
  auto result =
      rig.run({.command = "trap '' TERM; while :; do sleep 0.05; done", .timeout_ms = 200},
              controller.signal());
  CHECK(result.outcome == BashOutcome::timed_out);
  CHECK_FALSE(result.aborted);
}

TEST_CASE("executor: a call that was aborted before it began spawns nothing") {
  Scratch scratch;
  Rig rig;
  AbortController controller;
  controller.abort("too late");
  auto result = rig.run({.command = "touch " + (scratch / "ran")}, controller.signal());
  CHECK(result.outcome == BashOutcome::aborted);
  CHECK(result.aborted);
  CHECK(result.sandbox.ran == false);
  run_for(rig.loop, 100ms);
  CHECK_FALSE(exists(scratch / "ran"));
}

TEST_CASE("executor: an abort after the end changes nothing") {
  Rig rig;
  AbortController controller;
  auto result = rig.run({.command = "exit 3"}, controller.signal());
  controller.abort();
  run_for(rig.loop, 50ms);
  CHECK(result.outcome == BashOutcome::failed);
  CHECK(result.exit_code == 3);
}

TEST_CASE("executor: a timeout takes the whole process group") {
  Scratch scratch;
  Rig rig;
  rig.run({.command = "sleep 60 & echo $! > " + (scratch / "pid") + "; wait", .timeout_ms = 500});
  std::string pid = first_word(scratch / "pid");
  REQUIRE_FALSE(pid.empty());
  CHECK(wait_until(
      rig.loop, [&] { return !alive(pid); }, 10s));
}

TEST_CASE("executor: a background child that holds the pipe does not hold the call") {
  Scratch scratch;
  Rig rig;
  auto result = rig.run({.command = "sleep 300 & echo $! > " + (scratch / "pid") + "; echo done",
                         .timeout_ms = 60000});
  CHECK(result.outcome == BashOutcome::ok);
  CHECK(result.out.bytes == "done\n");
  CHECK_FALSE(result.timed_out);
  CHECK(result.duration < 20s);
  // What the command left in the background ends with it.
  std::string pid = first_word(scratch / "pid");
  CHECK(wait_until(
      rig.loop, [&] { return !alive(pid); }, 10s));
}

TEST_CASE("executor: the drain limit is counted from the exit however much a child writes") {
  Scratch scratch;
  Rig rig({.cwd = "", .drain_ms = 300});
  // In a session of its own, where no signal to the group reaches it.
  auto result = rig.bash("setsid bash -c 'trap \"\" TERM; echo $$ > " + (scratch / "pid") +
                         "; for i in {1..200}; do echo t; sleep 0.05; done' & while [ ! -s " +
                         (scratch / "pid") + " ]; do sleep 0.02; done; echo done");
  CHECK(result.outcome == BashOutcome::ok);
  CHECK_THAT(result.out.bytes, ContainsSubstring("done\n"));
  CHECK(result.duration < 8s);
  CHECK_FALSE(alive(first_word(scratch / "pid")));
}

TEST_CASE("executor: dropping the task kills the command") {
  Scratch scratch;
  Rig rig;
  auto spec = rig.shell->resolve(
      {.command = "echo $$ > " + (scratch / "pid") + "; sleep 60; touch " + (scratch / "late")});
  {
    std::optional<BashResult> result;
    TaskScope scope(rig.loop, [](std::exception_ptr) {});
    scope.start(stockade::test::store_value(rig.shell->run(spec, {}, nullptr), &result));
    REQUIRE(wait_until(
        rig.loop, [&] { return !first_word(scratch / "pid").empty(); }, 20s));
    CHECK(alive(first_word(scratch / "pid")));
  }
  std::string pid = first_word(scratch / "pid");
  CHECK(wait_until(
      rig.loop, [&] { return !exists("/proc/" + pid); }, 10s));
  CHECK_FALSE(exists(scratch / "late"));
}

TEST_CASE("executor: a task that is never awaited spawns nothing") {
  Scratch scratch;
  Rig rig;
  {
    auto task =
        rig.shell->run(rig.shell->resolve({.command = "touch " + (scratch / "ran")}), {}, nullptr);
  }
  run_for(rig.loop, 100ms);
  CHECK(rig.sandbox->calls == 0);
  CHECK_FALSE(exists(scratch / "ran"));
}

TEST_CASE("executor: nothing of an unconfined command outlives the call") {
  // Each leaves a process where a signal to the group does not reach it, and its pid in a file.
  const char* kinds[] = {
      "setsid bash -c 'trap \"\" TERM HUP; echo $$ > pid; exec sleep 300'",
      "(setsid bash -c '(trap \"\" TERM; echo $BASHPID > pid; exec sleep 300) &' &)",
      "set -m; bash -c 'echo $$ > pid; exec sleep 300'",
      "env -i setsid bash -c 'echo $$ > pid; exec /bin/sleep 300 >/dev/null 2>&1 </dev/null'"};
  const std::string ready = "\nwhile [ ! -s pid ]; do sleep 0.02; done; ";
  for (const char* kind : kinds)
    for (const char* how : {"exit", "timeout", "abort", "kill", "drop"}) {
      CAPTURE(kind, how);
      Scratch scratch;
      Rig rig({.cwd = scratch.path(), .grace_ms = 200});
      BashRequest request{.command = std::string(kind) + " &" + ready};
      request.policy = kDanger;
      if (how != std::string("exit")) request.command += "sleep 300";
      if (how == std::string("exit")) {
        CHECK(rig.run(request).outcome == BashOutcome::ok);
      } else if (how == std::string("timeout")) {
        request.timeout_ms = 1500;
        CHECK(rig.run(request).timed_out);
      } else {
        AbortController controller;
        auto process = rig.shell->start(rig.shell->resolve(request), controller.signal());
        REQUIRE(wait_until(rig.loop, [&] { return !first_word(scratch / "pid").empty(); }));
        if (how == std::string("drop")) {
          process.reset();
        } else {
          if (how == std::string("abort")) controller.abort();
          if (how == std::string("kill")) CHECK(process->kill());
          rig.settle(*process);
        }
      }
      const std::string pid = first_word(scratch / "pid");
      REQUIRE_FALSE(pid.empty());
      if (how == std::string("drop"))
        CHECK(wait_until(
            rig.loop, [&] { return !alive(pid); }, 10s));
      CHECK_FALSE(alive(pid));
    }
}

TEST_CASE("executor: a command that signals its own group does not reach what ends its tree") {
  Scratch scratch;
  Rig rig({.cwd = scratch.path()});
  BashRequest request{.command =
                          "setsid bash -c 'echo $$ > pid; exec sleep 300' & while [ ! -s pid ]; do "
                          "sleep 0.02; done; kill -KILL 0"};
  request.policy = kDanger;
  auto result = rig.run(request);
  CHECK(result.signal == SIGKILL);
  CHECK_FALSE(alive(first_word(scratch / "pid")));
}

TEST_CASE("executor: a filter that the command leaves behind may finish what it reads") {
  Rig rig;
  BashRequest request{.command =
                          "exec > >(while read -r l; do echo \"<$l>\"; done); echo a; echo b"};
  request.policy = kDanger;
  CHECK(rig.run(request).out.bytes == "<a>\n<b>\n");
}

TEST_CASE("executor: many calls at once keep their outputs apart and leave no descriptor") {
  Rig rig;
  rig.bash("true");
  auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator{});
  };
  auto before = open_descriptors();
  {
    std::vector<std::optional<BashResult>> results(20);
    TaskScope scope(rig.loop, [](std::exception_ptr) {});
    for (std::size_t i = 0; i < results.size(); ++i) {
      auto spec = rig.shell->resolve(
          {.command = "echo " + std::to_string(i) + "; exit " + std::to_string(i)});
      scope.start(stockade::test::store_value(rig.shell->run(spec, {}, nullptr), &results[i]));
    }
    REQUIRE(wait_until(rig.loop, [&] {
      for (const auto& result : results)
        if (!result) return false;
      return true;
    }));
    for (std::size_t i = 0; i < results.size(); ++i) {
      CHECK(results[i]->out.bytes == std::to_string(i) + "\n");
      CHECK(results[i]->exit_code == static_cast<int>(i));
    }
  }
  CHECK(wait_until(
      rig.loop, [&] { return open_descriptors() == before; }, 10s));
}

// ---- what it wrote

TEST_CASE("executor: output that overflows keeps its end and is whole on disk") {
  Rig rig({.cwd = "", .max_output_bytes = 1000});
  auto result = rig.bash("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo END");
  CHECK(result.outcome == BashOutcome::ok);
  CHECK(result.out.truncated);
  CHECK(result.out.total == 3000005);
  CHECK(result.out.bytes == std::string(995, 'x') + "\nEND\n");
  REQUIRE(result.out.spill_path);
  CHECK_FALSE(result.out.spill_note);
  CHECK(read_file(*result.out.spill_path) == std::string(3000000, 'x') + "\nEND\n");
  CHECK_FALSE(result.err.truncated);
  CHECK_FALSE(result.err.spill_path);
}

TEST_CASE("executor: a flood ends at the timeout and its spill at the cap") {
  Rig rig({.cwd = "", .max_output_bytes = 1000, .max_spill_bytes = 100000});
  auto result = rig.run({.command = "yes", .timeout_ms = 500});
  CHECK(result.outcome == BashOutcome::timed_out);
  CHECK(result.out.bytes.size() == 1000);
  CHECK(result.out.total > 100000);
  REQUIRE(result.out.spill_path);
  CHECK(std::filesystem::file_size(*result.out.spill_path) == 100000);
  CHECK(result.out.spill_note == "the spill file ends at its cap");
  CHECK(result.duration < 20s);
}

TEST_CASE("executor: exactly as much as is kept is not truncated") {
  Rig rig({.cwd = "", .max_output_bytes = 100});
  auto exact = rig.bash("printf '%0100d' 7");
  CHECK_FALSE(exact.out.truncated);
  CHECK_FALSE(exact.out.spill_path);
  CHECK(exact.out.bytes.size() == 100);
  auto more = rig.bash("printf '%0101d' 7");
  CHECK(more.out.truncated);
  CHECK(more.out.total == 101);
  CHECK(more.out.spill_path);
}

TEST_CASE("executor: a call may have more of its standard output kept and no more of its errors") {
  Rig rig({.cwd = "", .max_output_bytes = 100});
  BashRequest request{.command = "printf '%0500d' 1; printf '%0500d' 1 >&2",
                      .stdout_max_bytes = 500};
  auto result = rig.run(request);
  CHECK(result.out.bytes.size() == 500);
  CHECK_FALSE(result.out.truncated);
  CHECK(result.err.bytes.size() == 100);
  CHECK(result.err.truncated);
  CHECK(rig.shell->resolve({.command = "true", .stdout_max_bytes = 50}).stdout_max_bytes == 100);
}

TEST_CASE("executor: a character that is split across reads is whole") {
  Rig rig;
  auto result =
      rig.bash("printf '\\360\\237'; sleep 0.1; echo E >&2; sleep 0.1; printf '\\230\\200'");
  CHECK(result.out.bytes == "😀");
  CHECK(result.err.bytes == "E\n");
  CHECK(to_json(result)["stdout"]["text"] == "😀");
}

TEST_CASE("executor: a tail that is cut inside a character shows no broken one") {
  for (int count : {249, 250, 251, 252, 253}) {
    Rig rig({.cwd = "", .max_output_bytes = 1001});
    auto result = rig.bash("printf '😀%.0s' {1.." + std::to_string(count) + "}");
    CHECK(result.out.total == static_cast<std::uint64_t>(count) * 4);
    std::string text = to_json(result)["stdout"]["text"];
    CHECK(text.size() % 4 == 0);
    CHECK(text.size() >= 996);
    CHECK(text.find("\xEF\xBF\xBD") == std::string::npos);
  }
}

TEST_CASE("executor: bytes of any kind come back as they were written") {
  Rig rig;
  auto result = rig.bash("printf 'a\\377\\0b\\033[31m\\r\\n'");
  CHECK(result.out.bytes == std::string("a\377\0b\033[31m\r\n", 11));
  CHECK(result.out.total == 11);
  CHECK_NOTHROW(to_json(result).dump());
}

TEST_CASE("executor: a sink sees both streams as they come") {
  Rig rig;
  RecordingSink sink;
  auto result = rig.run({.command = "echo out; echo err >&2; echo more"}, {}, &sink);
  CHECK(sink.out == "out\nmore\n");
  CHECK(sink.err == "err\n");
  CHECK(result.out.bytes == sink.out);
  // The call is over and lets go of the sink.
  CHECK_FALSE(sink.resume);
}

TEST_CASE("executor: a sink that is full holds the command back until it takes more") {
  Rig rig({.cwd = "", .max_output_bytes = 1000, .max_spill_bytes = 1000});
  RecordingSink sink;
  sink.closed = true;
  Timer timer(rig.loop);
  std::size_t held = 0;
  timer.start(500ms, [&] {
    held = sink.out.size();
    sink.closed = false;
    sink.resume(Stream::output);
  });
  auto result = rig.run({.command = "head -c 2000000 /dev/zero"}, {}, &sink);
  CHECK(held > 0);
  CHECK(held < 200000);
  CHECK(sink.out.size() == 2000000);
  CHECK(result.out.total == 2000000);
}
