// SPDX-License-Identifier: MIT
// The launcher as a program. Where the kernel has no Landlock it must refuse, and that is what the
// tests of confinement then look for.
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/fd.hpp"
#include "framework/library.hpp"
#include "sandbox-local/probe.hpp"
#include "sandbox/status.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using stockade::test::exists;
using stockade::test::ProgramResult;
using stockade::test::read_file;
using stockade::test::run_program;
using stockade::test::Scratch;
using stockade::test::write_file;

namespace {

using Words = std::vector<std::string>;

std::string launcher() {
  return installation_directory() + "/stockade-launch";
}

bool has_landlock() {
  return inspect_host().landlock_abi > 0;
}

ProgramResult launch(Words arguments) {
  arguments.insert(arguments.begin(), launcher());
  return run_program(arguments);
}

// With descriptor 3 as its status channel; the report is what `report` holds afterwards.
ProgramResult launch_with_status(const std::string& report, const Words& arguments) {
  Words argv{"/bin/sh", "-c", "report=$1; shift; exec \"$0\" --status-fd 3 \"$@\" 3>\"$report\"",
             launcher(), report};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run_program(argv);
}

// The value of a line of /proc/self/status as a confined command sees it.
std::string process_fact(const std::string& name) {
  auto result = launch({"--ro", "/", "--", "cat", "/proc/self/status"});
  std::istringstream lines(result.out);
  std::string line;
  while (std::getline(lines, line))
    if (line.starts_with(name + ":"))
      return line.substr(line.find_first_not_of(" \t", name.size() + 1));
  return "";
}

bool refused_for_want_of_landlock(const ProgramResult& result) {
  return result.status == 125 && result.out.empty() &&
         result.err.starts_with("landlock-run: Landlock is not enabled in this kernel");
}

// True where there is no Landlock, and then all that is left to see is that nothing runs.
bool only_refuses() {
  if (has_landlock()) return false;
  CHECK(refused_for_want_of_landlock(launch({"--ro", "/", "--", "echo", "ran"})));
  return true;
}

}  // namespace

TEST_CASE("launcher: a usage error is exit 125 and one line") {
  struct Row {
    Words arguments;
    std::string line;
  };
  for (const auto& row : {
           Row{{}, "missing `-- <argv>...` command"},
           Row{{"--ro", "/"}, "missing `-- <argv>...` command"},
           Row{{"--"}, "missing `-- <argv>...` command"},
           Row{{"--ro", "/", "--"}, "missing `-- <argv>...` command"},
           Row{{"--bogus"}, "unknown argument: --bogus"},
           Row{{"--bogus", "--", "true"}, "unknown argument: --bogus"},
           Row{{"/", "--", "true"}, "unknown argument: /"},
           Row{{"--ro"}, "--ro requires a path"},
           Row{{"--ro", "--", "true"}, "--ro requires a path"},
           Row{{"--rw"}, "--rw requires a path"},
           Row{{"--rw", "--", "true"}, "--rw requires a path"},
           Row{{"--probe", "--"}, "--probe takes no other arguments"},
           Row{{"--probe", "--", "true"}, "--probe takes no other arguments"},
           Row{{"--ro", "/", "--probe"}, "--probe takes no other arguments"},
           Row{{"--status-fd"}, "--status-fd requires a number"},
           Row{{"--status-fd", "2", "--", "true"},
               "--status-fd requires a descriptor above 2, got 2"},
           Row{{"--status-fd", "3x", "--", "true"},
               "--status-fd requires a descriptor above 2, got 3x"},
           Row{{"--status-fd", "", "--", "true"},
               "--status-fd requires a descriptor above 2, got "},
           Row{{"--status-fd", "99999999999999999999", "--", "true"},
               "--status-fd requires a descriptor above 2, got 99999999999999999999"},
       }) {
    auto result = launch(row.arguments);
    CHECK(result.status == 125);
    CHECK(result.out.empty());
    CHECK(result.err == "landlock-run: usage error: " + row.line + "\n");
  }
}

TEST_CASE("launcher: the probe says what the kernel enforces") {
  auto result = launch({"--probe"});
  int abi = inspect_host().landlock_abi;
  if (abi == 0) {
    CHECK(refused_for_want_of_landlock(result));
    return;
  }
  CHECK(result.status == 0);
  CHECK(result.out ==
        (abi >= 3 ? "landlock: fully enforced\n" : "landlock: partially enforced (older ABI)\n"));
  CHECK(result.err.empty());
}

TEST_CASE("launcher: the command gets its words verbatim and its status comes back") {
  auto printed = launch({"--ro", "/", "--", "printf", "%s|", "$HOME", "a b", "--ro", "--", ""});
  if (!has_landlock()) {
    CHECK(refused_for_want_of_landlock(printed));
    return;
  }
  CHECK(printed.status == 0);
  CHECK(printed.out == "$HOME|a b|--ro|--||");
  CHECK(launch({"--ro", "/", "--", "sh", "-c", "exit 7"}).status == 7);
  CHECK(launch({"--ro", "/", "--", "sh", "-c", "exit 125"}).status == 125);
  CHECK(launch({"--ro", "/", "--", "sh", "-c", "kill -TERM $$"}).status == 128 + 15);
}

TEST_CASE("launcher: a command that cannot be executed is exit 125 with its name") {
  if (only_refuses()) return;
  auto missing = launch({"--ro", "/", "--", "/no-such-program"});
  CHECK(missing.status == 125);
  CHECK(missing.err ==
        "landlock-run: cannot execute /no-such-program: No such file or directory\n");
  Scratch scratch;
  write_file(scratch / "plain", "#!/bin/sh\n", 0644);
  auto plain = launch({"--ro", "/", "--", scratch / "plain"});
  CHECK(plain.status == 125);
  CHECK_THAT(plain.err, ContainsSubstring("Permission denied"));
}

TEST_CASE("launcher: a rule for a path that is missing stops the command") {
  if (only_refuses()) return;
  Scratch scratch;
  auto result = launch(
      {"--ro", "/", "--rw", scratch.path(), "--rw", scratch / "no", "--", "touch", scratch / "m"});
  CHECK(result.status == 125);
  CHECK(result.err == "landlock-run: cannot open rule path " + (scratch / "no") +
                          ": No such file or directory\n");
  CHECK_FALSE(exists(scratch / "m"));
}

TEST_CASE("launcher: a write lands where a rule allows it and nowhere else") {
  if (only_refuses()) return;
  Scratch scratch;
  std::filesystem::create_directory(scratch / "ws");
  write_file(scratch / "victim", "whole");
  auto attack = [&](const std::string& command) {
    return launch({"--ro", "/", "--rw", "/dev/null", "--rw", scratch / "ws", "--", "sh", "-c",
                   command, "sh", scratch.path()});
  };
  CHECK(attack("echo in > \"$1/ws/f\" && mkdir \"$1/ws/d\" && rm \"$1/ws/f\"").status == 0);
  CHECK(exists(scratch / "ws/d"));
  CHECK(attack("ls / > /dev/null").status == 0);
  CHECK(attack("cat \"$1/victim\"").out == "whole");

  for (std::string command :
       {"echo x > \"$1/new\"", "echo x > \"$1/victim\"", "echo x >> \"$1/victim\"",
        "rm \"$1/victim\"", "mkdir \"$1/new\"", "mv \"$1/victim\" \"$1/ws/new\"",
        "ln \"$1/victim\" \"$1/ws/new\"", "mkfifo \"$1/new\"", "ln -s x \"$1/new\""}) {
    CAPTURE(command);
    CHECK(attack(command).status != 0);
    CHECK_FALSE(exists(scratch / "new"));
    CHECK_FALSE(exists(scratch / "ws/new"));
    CHECK(read_file(scratch / "victim") == "whole");
    // The same command does its work where nothing confines it.
    Scratch control;
    std::filesystem::create_directory(control / "ws");
    write_file(control / "victim", "whole");
    CHECK(run_program({"sh", "-c", command, "sh", control.path()}).status == 0);
  }
}

TEST_CASE("launcher: a writable directory takes no device node") {
  if (only_refuses()) return;
  Scratch scratch;
  auto result =
      launch({"--ro", "/", "--rw", scratch.path(), "--", "mknod", scratch / "d", "b", "7", "0"});
  CHECK(result.status != 0);
  CHECK_FALSE(exists(scratch / "d"));
}

TEST_CASE("launcher: an inherited descriptor is closed before the command starts") {
  if (only_refuses()) return;
  Scratch scratch;
  Fd leak(open((scratch / "leak").c_str(), O_WRONLY | O_CREAT, 0644));
  REQUIRE(leak);
  Fd high(fcntl(leak.get(), F_DUPFD, 200));
  REQUIRE(high);
  std::string write = "echo pwn >&" + std::to_string(high.get());
  // bash, since a POSIX sh takes one digit only.
  REQUIRE(run_program({"bash", "-c", write}).status == 0);
  REQUIRE(read_file(scratch / "leak") == "pwn\n");

  auto result = launch({"--ro", "/", "--", "bash", "-c", write});
  CHECK(result.status != 0);
  CHECK_THAT(result.err, ContainsSubstring("Bad file descriptor"));
  CHECK(read_file(scratch / "leak") == "pwn\n");
  // `ls` has one of its own for the directory.
  CHECK(launch({"--ro", "/", "--", "ls", "/proc/self/fd"}).out == "0\n1\n2\n3\n");
  CHECK(launch_with_status(scratch / "report", {"--ro", "/", "--", "ls", "/proc/self/fd"}).out ==
        "0\n1\n2\n3\n");
}

TEST_CASE("launcher: capabilities beyond those for files of any owner are gone") {
  if (only_refuses()) return;
  auto mask = [](const std::string& name) {
    std::string text = process_fact(name);
    REQUIRE_FALSE(text.empty());
    return std::stoull(text, nullptr, 16);
  };
  constexpr std::uint64_t kAllowed = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE |
                                     1ULL << CAP_FOWNER | 1ULL << CAP_FSETID | 1ULL << CAP_KILL |
                                     1ULL << CAP_SETGID | 1ULL << CAP_SETUID;
  CHECK((mask("CapEff") & ~kAllowed) == 0);
  CHECK((mask("CapPrm") & ~kAllowed) == 0);
  CHECK(mask("CapInh") == 0);
  CHECK(mask("CapAmb") == 0);
  if (geteuid() != 0) CHECK(mask("CapEff") == 0);
}

TEST_CASE("launcher: no program can raise the privileges of the command") {
  if (only_refuses()) return;
  CHECK(process_fact("NoNewPrivs") == "1");
}

TEST_CASE("launcher: the status channel says ready and stays out of reach") {
  Scratch scratch;
  auto result = launch_with_status(
      scratch / "report",
      {"--ro", "/", "--", "sh", "-c", "echo out; echo err >&2; echo x >&3; exit 1"});
  if (!has_landlock()) {
    CHECK(
        read_status(read_file(scratch / "report")).failure.starts_with("Landlock is not enabled"));
    return;
  }
  CHECK_THAT(result.err, ContainsSubstring("3"));  // there is no such descriptor
  CHECK(result.out == "out\n");
  CHECK(result.err.starts_with("err\n"));
  std::string report = read_file(scratch / "report");
  CHECK(report ==
        "{\"status\":\"ready\",\"landlockAbi\":" + std::to_string(inspect_host().landlock_abi) +
            "}\n" + "{\"status\":\"exited\",\"exitCode\":1}\n");
  CHECK(read_status(report).command_ran());
  CHECK(read_status(report).exit_code == 1);
}

TEST_CASE("launcher: a refusal goes to the status channel and not to stderr") {
  if (only_refuses()) return;
  Scratch scratch;
  auto result = launch_with_status(scratch / "report", {"--rw", scratch / "no", "--", "true"});
  CHECK(result.status == 125);
  CHECK(result.err.empty());
  auto status = read_status(read_file(scratch / "report"));
  CHECK_FALSE(status.ready);
  CHECK(status.failure ==
        "cannot open rule path " + (scratch / "no") + ": No such file or directory");
}

TEST_CASE("launcher: a failed exec is reported after ready") {
  if (only_refuses()) return;
  Scratch scratch;
  auto result = launch_with_status(scratch / "report", {"--ro", "/", "--", "/no-such-program"});
  CHECK(result.status == 125);
  CHECK(result.err.empty());
  std::istringstream lines(read_file(scratch / "report"));
  std::string ready;
  std::string failed;
  std::string more;
  std::getline(lines, ready);
  std::getline(lines, failed);
  CHECK_FALSE(std::getline(lines, more));
  CHECK(nlohmann::json::parse(ready)["status"] == "ready");
  CHECK(nlohmann::json::parse(failed) ==
        nlohmann::json{{"status", "exec-failed"},
                       {"message", "cannot execute /no-such-program: No such file or directory"}});
  CHECK_FALSE(read_status(ready + "\n" + failed + "\n").command_ran());
}

TEST_CASE("launcher: a report is JSON whatever bytes a path holds") {
  if (only_refuses()) return;
  Scratch scratch;
  for (std::string name :
       {std::string("quo\"te\\"), std::string("nl\n\t\x01"), std::string("\xff\xc3"),
        std::string("}\n{\"status\":\"ready\"}\n"), std::string(3900, '"')}) {
    auto result = launch_with_status(scratch / "report", {"--ro", "/no/" + name, "--", "true"});
    CHECK(result.status == 125);
    std::string report = read_file(scratch / "report");
    REQUIRE(report.find('\n') == report.size() - 1);
    auto json = nlohmann::json::parse(report, nullptr, false);
    REQUIRE(json.is_object());
    CHECK(json["status"] == "refused");
    CHECK_FALSE(read_status(report).command_ran());
  }
}

TEST_CASE("launcher: a status descriptor that is not open is refused") {
  auto result =
      run_program({"bash", "-c", "exec \"$0\" --status-fd 300 --ro / -- true", launcher()});
  CHECK(result.status == 125);
  CHECK(result.err == "landlock-run: the status descriptor is not open: Bad file descriptor\n");
}

TEST_CASE("launcher: the environment does not change how it starts") {
  Scratch scratch;
  stockade::test::ProgramOptions options;
  options.environment = {{"LD_PRELOAD", scratch / "no.so"}, {"LD_LIBRARY_PATH", scratch.path()}};
  auto result = run_program({launcher(), "--bogus"}, options);
  CHECK(result.status == 125);
  CHECK(result.err == "landlock-run: usage error: unknown argument: --bogus\n");
}
