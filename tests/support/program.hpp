// SPDX-License-Identifier: MIT
// Runs a program to its end, for tests of whole executables.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stockade::test {

struct ProgramOptions {
  std::optional<uid_t> uid{};  // also the gid, without further groups; needs root
  std::string cwd = "/";
  std::map<std::string, std::string> environment{};  // added to the test's own
  std::string input{};
  int timeout_ms = 60000;  // then SIGKILL, and `timed_out`
};

struct ProgramResult {
  int status = -1;  // exit status, or 128+n
  std::string out;
  std::string err;
  bool timed_out = false;
  double seconds = 0;
};

ProgramResult run_program(const std::vector<std::string>& argv, const ProgramOptions& options = {});

// Processes whose command line holds `needle`, this one aside.
std::vector<pid_t> processes_with(const std::string& needle);

}  // namespace stockade::test
