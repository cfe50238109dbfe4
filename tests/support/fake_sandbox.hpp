// SPDX-License-Identifier: MIT
// A provider of ctx.sandbox that confines nothing: it puts words in front of the command and says
// what it was told to say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/error.hpp"
#include "sandbox/sandbox.hpp"

namespace stockade::test {

class FakeSandbox final : public SandboxProvider {
 public:
  FakeSandbox() {
    answer.enforcement = SandboxEnforcement::full;
    answer.backend = "fake";
    answer.denial_signatures = {"read-only file system", "permission denied"};
  }

  ConfinedArgv confine(const std::vector<std::string>& argv, const SandboxPolicy& asked,
                       const std::string& directory) override {
    ++calls;
    command = argv;
    policy = asked;
    working_directory = directory;
    if (error) throw *error;
    ConfinedArgv confined = answer;
    confined.argv.insert(confined.argv.end(), argv.begin(), argv.end());
    return confined;
  }

  // A runner that is this shell text, with the command in "$@".
  void run_with(const std::string& script) {
    answer.argv = {"/bin/sh", "-c", script, "fake-runner"};
  }
  // The same, reporting on descriptor 3.
  void report_with(const std::string& script) {
    run_with(script);
    answer.status_channel = true;
  }

  ConfinedArgv answer;  // argv: what stands before the command
  std::optional<Error> error;

  int calls = 0;
  std::vector<std::string> command;
  std::optional<SandboxPolicy> policy;
  std::string working_directory;
};

}  // namespace stockade::test
