// SPDX-License-Identifier: MIT
// The provider of `ctx.sandbox` for this machine: picks a backend once, by a probe that really runs
// it, and confines with it. Without a usable one it refuses every call and says why.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/log.hpp"
#include "framework/loop.hpp"
#include "framework/task.hpp"
#include "sandbox-local/backend.hpp"
#include "sandbox-local/temporary.hpp"
#include "sandbox/sandbox.hpp"

namespace stockade {

// Of this platform, strongest and cheapest first.
inline std::vector<Backend> default_backends() {
#if defined(__APPLE__)
  return {Backend::seatbelt};
#else
  return {Backend::namespace_, Backend::bwrap, Backend::landlock};
#endif
}

struct SandboxLocalConfig {
  // Tried in this order; the first that a probe proves usable serves every call. One alone is not
  // probed: its own refusal at run time is the fail-closed point.
  std::vector<Backend> backends = default_backends();
  bool require_full = false;  // refuse a backend that enforces only partially
  // A runner of the operator's own, given bubblewrap's plain profile. Its enforcement is the
  // operator's assertion; nothing is probed.
  std::vector<std::string> runner_command;
  std::vector<std::string> runner_failure_signatures;  // what it prints when it refuses
  std::int64_t probe_timeout_ms = 5000;                // for each probe
};

// Checks beyond types. Throws Error `CONFIG_INVALID`.
void check_sandbox_local_config(const SandboxLocalConfig& config);

class LocalSandbox final : public SandboxProvider {
 public:
  // Probes; never fails for want of a backend.
  static Task<std::shared_ptr<LocalSandbox>> open(Loop& loop, SandboxLocalConfig config,
                                                  BackendHost host, Log log);

  // Spawns nothing and waits for nothing; looks at the workspace root, and makes the directory of
  // the policy's temporary area when it is the first to need it.
  ConfinedArgv confine(const std::vector<std::string>& argv, const SandboxPolicy& policy,
                       const std::string& working_directory) override;

 private:
  LocalSandbox(Loop& loop, SandboxLocalConfig config, BackendHost host, Log log);
  Task<> choose();
  Task<> choose_again();
  ConfinedArgv confine_custom(const std::vector<std::string>& argv, const SandboxPolicy& policy);

  Loop& loop_;
  SandboxLocalConfig config_;
  BackendHost host_;
  Log log_;
  TemporaryArea temporary_;
  std::optional<Backend> backend_;
  bool metadata_protected_ = true;    // as far as a probe has seen
  bool transient_ = false;            // a reason may be gone by the next call
  std::vector<std::string> reasons_;  // why candidates are not usable, `bwrap: …` each
  TaskScope tasks_;
};

}  // namespace stockade
