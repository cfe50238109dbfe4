// SPDX-License-Identifier: MIT
// An executor over a fake sandbox, and real bash children.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "bash-sandbox/executor.hpp"
#include "tests/support/await.hpp"
#include "tests/support/fake_sandbox.hpp"

namespace stockade::test {

struct Rig {
  explicit Rig(BashSandboxConfig config = {}, SandboxPolicyConfig policy = {})
      : policies(std::make_shared<SandboxPolicyService>(policy)),
        shell(std::make_shared<BashExecutor>(loop, std::move(config), policies,
                                             [this] { return sandbox; })) {}
  ~Rig() {
    for (const auto& directory : spill_directories) std::filesystem::remove_all(directory);
  }

  BashResult run(BashRequest request, AbortSignal abort = {}, OutputSink* sink = nullptr) {
    BashResult result =
        await_task(loop, shell->run(shell->resolve(request), std::move(abort), sink));
    note_spills(result);
    return result;
  }
  BashResult bash(const std::string& command) { return run(BashRequest{.command = command}); }

  std::shared_ptr<BashProcess> start(const std::string& command, AbortSignal abort = {}) {
    return shell->start(shell->resolve({.command = command}), std::move(abort));
  }
  BashResult settle(const BashProcess& process) {
    Completion<BashResult> done = process.done();
    if (!wait_until(loop, [&] { return done.settled(); }))
      throw std::runtime_error("the process did not settle in time");
    note_spills(done.value());
    return done.value();
  }

  void note_spills(const BashResult& result) {
    for (const auto* stream : {&result.out, &result.err})
      if (stream->spill_path)
        spill_directories.insert(std::filesystem::path(*stream->spill_path).parent_path());
  }

  Loop loop;
  std::shared_ptr<FakeSandbox> sandbox = std::make_shared<FakeSandbox>();
  std::shared_ptr<SandboxPolicyService> policies;
  std::shared_ptr<BashExecutor> shell;
  std::set<std::filesystem::path> spill_directories;
};

// A process that is there and no zombie.
inline bool alive(const std::string& pid) {
  std::ifstream in("/proc/" + pid + "/stat");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  auto end = text.rfind(") ");
  return end != std::string::npos && text[end + 2] != 'Z' && text[end + 2] != 'X';
}

inline const SandboxExecutionPolicy kDanger{SandboxMode::danger_full_access, "/", std::nullopt};

}  // namespace stockade::test
