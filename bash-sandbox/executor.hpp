// SPDX-License-Identifier: MIT
// The provider of `ctx.shell`: the call path and nothing else. It never names a backend; what
// confines is whatever provides `ctx.sandbox` at the moment of the call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bash-sandbox/queue.hpp"
#include "bash-sandbox/shell.hpp"
#include "bash-sandbox/shell_environment.hpp"
#include "bash-sandbox/spill.hpp"
#include "framework/loop.hpp"
#include "sandbox/sandbox.hpp"

namespace stockade {

struct BashSandboxConfig {
  std::string cwd;                                  // "": the working directory of the host
  std::int64_t timeout_ms = 120000;                 // of a call that names none
  std::int64_t max_timeout_ms = 600000;             // caps what a call may name
  std::int64_t max_output_bytes = 64000;            // kept in memory of each stream
  std::int64_t max_spill_bytes = 67108864;          // written to disk of each stream
  std::int64_t max_spill_total_bytes = 1073741824;  // of all spill files; the oldest make room
  bool keep_spills = false;                         // leave the spill files when the host ends
  std::int64_t grace_ms = 3000;                     // between TERM and KILL
  std::int64_t drain_ms = 250;  // after the exit, for what the command left in the background
  std::int64_t max_calls = 64;  // that run at once; background commands are not counted
  std::int64_t max_queued_calls = 4096;  // that wait for a place
  std::string home{};  // STOCKADE_HOME of commands; "": the host's own, else ~/.stockade
};

// Checks beyond types. Throws Error `CONFIG_INVALID`.
void check_bash_sandbox_config(const BashSandboxConfig& config);

class BashExecutor final : public Shell {
 public:
  // `sandbox` finds the provider of the moment and may throw. `code` keeps the library mapped that
  // this is code of; each call holds it, too.
  BashExecutor(Loop& loop, BashSandboxConfig config,
               std::shared_ptr<const SandboxPolicyResolver> policies,
               std::function<std::shared_ptr<SandboxProvider>()> sandbox,
               std::shared_ptr<const void> code = nullptr);

  BashSpec resolve(const BashRequest& request) const override;
  Task<BashResult> run(BashSpec spec, AbortSignal abort, OutputSink* sink) override;
  std::shared_ptr<BashProcess> start(BashSpec spec, AbortSignal abort) override;
  SandboxMode sandbox_mode() const override { return policies_->default_mode(); }
  ShellLoad load() const override;
  const std::shared_ptr<ShellEnvironment>& environment() const noexcept { return environment_; }

 private:
  std::shared_ptr<BashProcess> launch(BashSpec spec, AbortSignal abort, OutputSink* sink,
                                      std::chrono::milliseconds queued,
                                      std::shared_ptr<const void> token);

  Loop& loop_;
  BashSandboxConfig config_;
  std::shared_ptr<const SandboxPolicyResolver> policies_;
  std::function<std::shared_ptr<SandboxProvider>()> sandbox_;
  std::shared_ptr<SpillDirectory> spills_;
  std::shared_ptr<CallQueue> queue_;
  std::shared_ptr<ShellEnvironment> environment_;
  std::shared_ptr<std::size_t> background_ = std::make_shared<std::size_t>(0);
  std::shared_ptr<const void> code_;
};

}  // namespace stockade
