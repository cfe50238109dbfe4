// SPDX-License-Identifier: MIT
// An executor over a fake sandbox, and real bash children.
#pragma once

#include <fstream>
#include <memory>
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
  BashResult run(BashRequest request, AbortSignal abort = {}, OutputSink* sink = nullptr) {
    return await_task(loop, shell->run(shell->resolve(request), std::move(abort), sink));
  }
  BashResult bash(const std::string& command) { return run(BashRequest{.command = command}); }

  std::shared_ptr<BashProcess> start(const std::string& command, AbortSignal abort = {}) {
    return shell->start(shell->resolve({.command = command}), std::move(abort));
  }
  BashResult settle(const BashProcess& process) {
    Completion<BashResult> done = process.done();
    if (!wait_until(loop, [&] { return done.settled(); }))
      throw std::runtime_error("the process did not settle in time");
    return done.value();
  }

  Loop loop;
  std::shared_ptr<FakeSandbox> sandbox = std::make_shared<FakeSandbox>();
  std::shared_ptr<SandboxPolicyService> policies;
  std::shared_ptr<BashExecutor> shell;
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
