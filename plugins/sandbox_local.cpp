// SPDX-License-Identifier: MIT
// Provides ctx.sandbox with this machine's backends.
#include "framework/plugin.hpp"
#include "sandbox-local/local_sandbox.hpp"
#include "sandbox-local/probe.hpp"

namespace stockade {
namespace {

Task<> apply(Context context, SandboxLocalConfig config) {
  auto opening =
      LocalSandbox::open(context.loop(), std::move(config), inspect_host(), context.log());
  std::shared_ptr<LocalSandbox> sandbox = co_await opening;
  context.provide<SandboxProvider>(std::move(sandbox));
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("sandbox-local", ({}), stockade::apply, stockade::check_sandbox_local_config)
