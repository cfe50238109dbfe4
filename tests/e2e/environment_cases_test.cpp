// SPDX-License-Identifier: MIT
// How a command reaches bash and what it finds there, in cases that this kind of software gets
// wrong.
#include <unistd.h>

#include <thread>

#include "tests/e2e/world.hpp"
#include "tests/support/json_lines.hpp"

using namespace stockade::test;

namespace {

const std::vector<std::string> kModes{"read-only", "workspace-write", "danger-full-access"};

nlohmann::json call(const World& world, const std::string& mode, const std::string& command) {
  ProgramOptions options;
  options.input =
      nlohmann::json{{"id", 1}, {"tool", "bash"}, {"arguments", {{"command", command}}}}.dump() +
      "\n";
  auto program = world.stockade({"run", "--mode", mode, "--backend", world.backend, "-"}, options);
  INFO(program.err);
  return nlohmann::json::parse(program.out)["structuredContent"];
}

}  // namespace

BACKEND_TEST("a background command has the same streams and ends as a whole") {
  auto line = [](int id, const char* tool, nlohmann::json arguments) {
    return nlohmann::json{{"id", id}, {"tool", tool}, {"arguments", std::move(arguments)}}.dump() +
           "\n";
  };
  for (const auto& mode : kModes) {
    INFO(mode);
    const std::string mark = std::to_string(getpid()) + "077";
    ProgramOptions options;
    options.input =
        line(1, "bash",
             {{"command",
               "echo first; echo e >/dev/stderr; echo o >/dev/stdout; diff <(echo a) <(echo a); "
               "printf '\\360\\237'; sleep 0.2; printf '\\230\\200\\n'; cat /dev/stdin; exit 3"},
              {"run_in_background", true}}) +
        line(2, "job_output", {{"jobId", "bash-1"}, {"wait", true}}) +
        line(3, "bash",
             {{"command", "setsid sleep " + mark + " & echo up; sleep " + mark},
              {"run_in_background", true}}) +
        line(4, "job_kill", {{"jobId", "bash-2"}}) +
        line(5, "job_output", {{"jobId", "bash-2"}, {"wait", true}});
    auto program =
        world.stockade({"run", "--mode", mode, "--backend", world.backend, "-"}, options);
    INFO(program.out);
    const auto results = json_lines(program.out);
    REQUIRE(results.size() == 5);
    const std::string text = results[1]["content"][0]["text"];
    CHECK_THAT(text, ContainsSubstring("first\n") && ContainsSubstring("o\n") &&
                         ContainsSubstring("e\n") && ContainsSubstring("\U0001F600\n") &&
                         ContainsSubstring("exit code: 3"));
    CHECK_THAT(text, !ContainsSubstring("\uFFFD"));
    CHECK_THAT(results[4]["content"][0]["text"].get<std::string>(), ContainsSubstring("killed"));
    CHECK(processes_with(mark).empty());
  }
}

BACKEND_TEST("values of the environment are in no command line") {
  const std::string secret = "canary" + std::to_string(getpid());
  const std::string sleep = "sleep 1.0" + std::to_string(getpid()) + std::to_string(world.uid);
  for (const auto& mode : kModes) {
    INFO(mode);
    ProgramOptions options;
    options.environment = {{"PLAIN", secret}};
    ProgramResult result;
    std::thread host([&] {
      result = world.stockade(
          {"exec", "--mode", mode, "--backend", world.backend, "--", "echo $PLAIN; " + sleep},
          options);
    });
    bool seen = false;
    for (int i = 0; i < 400 && !seen; ++i) {
      seen = !processes_with(sleep).empty();
      if (!seen) usleep(20000);
    }
    const bool shown = !processes_with(secret).empty();
    host.join();
    CHECK(seen);
    CHECK_FALSE(shown);
    CHECK(result.out == secret + "\n");
  }
}

BACKEND_TEST("the standard streams can be opened by name") {
  for (const auto& mode : kModes) {
    INFO(mode);
    auto result = world.json(mode,
                             "set -e; echo first; echo e >/dev/stderr; echo o >/dev/stdout; echo x "
                             "| tee /dev/stderr; diff <(echo a) <(echo a); cat <<<h; : >/dev/null; "
                             "cat /dev/stdin; head -c1 /dev/urandom | wc -c");
    CHECK(result["outcome"] == "ok");
    CHECK(result["stdout"]["text"] == "first\no\nx\nh\n1\n");
    CHECK(result["stderr"]["text"] == "e\nx\n");
    auto terminal = world.json(mode, "stty -a </dev/tty", {"--timeout-ms", "20000"});
    CHECK(terminal["outcome"] != "ok");
    CHECK(terminal["timedOut"] == false);
  }
}

BACKEND_TEST("a command of any length and shape is a command") {
  for (const auto& mode : kModes) {
    INFO(mode);
    for (std::size_t size : {131071U, 131072U, 200000U, 800000U}) {
      std::string command = "echo done; exit 5 #";
      command.resize(size, 'x');
      auto result = call(world, mode, command);
      CHECK(result["outcome"] == "failed");
      CHECK(result["exitCode"] == 5);
      CHECK(result["stdout"]["text"] == "done\n");
    }
    for (const char* option : {"-e", "--version"})
      CHECK(call(world, mode, option)["exitCode"] == 127);
    CHECK(call(world, mode, "cat <<'E'\n$a `b`\nE")["stdout"]["text"] == "$a `b`\n");
    CHECK(call(world, mode, "echo a # comment")["stdout"]["text"] == "a\n");
    CHECK(call(world, mode, "echo a\\")["stdout"]["text"] == "a\\\n");
    CHECK(call(world, mode, "echo a\r\necho b")["stdout"]["text"] == "a\r\nb\n");
    auto nul = call(world, mode, std::string("echo a\0b", 8));
    CHECK(nul["outcome"] == "failed");
    CHECK(nul["error"]["code"] == "REQUEST_INVALID");
  }
}

BACKEND_TEST("secrets, hooks and loader variables of the host stay with the host") {
  write_file(world.workspace() + "/b.sh", "echo HOOKED\n");
  ProgramOptions options;
  const std::string first = world.outside() + "/first";
  options.environment = {{"X_API_KEY", "s3cr3t"},
                         {"my_token", "s3cr3t"},
                         {"BASH_ENV", world.workspace() + "/b.sh"},
                         {"ENV", world.workspace() + "/b.sh"},
                         {"LD_LIBRARY_PATH", world.workspace()},
                         {"GCONV_PATH", world.workspace()},
                         {"BASH_FUNC_ls%%", "() { echo HIJACKED; }"},
                         {"STOCKADE_THING", "s3cr3t"},
                         {"PATH", first + ":/usr/bin:/bin"},
                         {"PLAIN", "kept"}};
  for (const auto& mode : kModes) {
    INFO(mode);
    auto result = world.stockade(
        {"exec", "--mode", mode, "--backend", world.backend, "--", "env; ls -d /; echo $PATH"},
        options);
    CHECK(result.status == 0);
    for (const char* gone :
         {"s3cr3t", "HOOKED", "HIJACKED", "LD_LIBRARY_PATH", "GCONV_PATH", "BASH_ENV", "\nENV="})
      CHECK(result.out.find(gone) == std::string::npos);
    CHECK(result.out.find("PLAIN=kept\n") != std::string::npos);
    CHECK(result.out.find("STOCKADE_SHELL=1\n") != std::string::npos);
    CHECK(result.out.find("\n" + first + ":/usr/bin:/bin\n") != std::string::npos);
  }
}

BACKEND_TEST("a broken pipe ends a command as anywhere else") {
  for (const auto& mode : kModes)
    CHECK(world.json(mode, "yes | head -n 1; echo ${PIPESTATUS[0]}")["stdout"]["text"] ==
          "y\n141\n");
}
