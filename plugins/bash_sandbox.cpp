// SPDX-License-Identifier: MIT
// Provides ctx.shell and ctx.shellEnvironment over ctx.sandbox and ctx.sandboxPolicy.
#include "bash-sandbox/executor.hpp"
#include "framework/plugin.hpp"

namespace stockade {
namespace {

Task<> apply(Context context, BashSandboxConfig config) {
  // Held, and not looked up for each call: a call in flight ends on the sandbox that it began with.
  auto sandbox = context.get<SandboxProvider>();
  auto executor = std::make_shared<BashExecutor>(
      context.loop(), std::move(config), context.get<SandboxPolicyResolver>(),
      [sandbox] { return sandbox; }, context.code());
  context.provide<ShellEnvironment>(executor->environment());
  context.provide<Shell>(executor);
  co_return;
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("bash-sandbox", ({"sandboxPolicy/1", "sandbox/1"}), stockade::apply,
                stockade::check_bash_sandbox_config)
