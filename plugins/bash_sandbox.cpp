// SPDX-License-Identifier: MIT
// Provides ctx.shell and ctx.shellEnvironment over ctx.sandbox and ctx.sandboxPolicy.
#include "bash-sandbox/executor.hpp"
#include "framework/plugin.hpp"

namespace stockade {
namespace {

Task<> apply(Context context, BashSandboxConfig config) {
  auto executor = std::make_shared<BashExecutor>(
      context.loop(), std::move(config), context.get<SandboxPolicyResolver>(),
      [context] { return context.get<SandboxProvider>(); }, context.code());
  context.provide<ShellEnvironment>(executor->environment());
  context.provide<Shell>(executor);
  co_return;
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("bash-sandbox", ({"sandboxPolicy/1", "sandbox/1"}), stockade::apply,
                stockade::check_bash_sandbox_config)
