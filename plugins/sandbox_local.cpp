// SPDX-License-Identifier: MIT
// Provides ctx.sandbox with this machine's backends, and ctx.sandboxDoctor.
#include "framework/plugin.hpp"
#include "sandbox-local/doctor.hpp"
#include "sandbox-local/local_sandbox.hpp"
#include "sandbox-local/probe.hpp"

namespace stockade {
namespace {

Task<> apply(Context context, SandboxLocalConfig config) {
  BackendHost host = inspect_host();
  context.provide<SandboxDoctor>(
      std::make_shared<LocalDoctor>(context.loop(), host, default_backends(),
                                    std::chrono::milliseconds(config.probe_timeout_ms)));
  auto opening =
      LocalSandbox::open(context.loop(), std::move(config), std::move(host), context.log());
  std::shared_ptr<LocalSandbox> sandbox = co_await opening;
  context.provide<SandboxProvider>(std::move(sandbox));
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("sandbox-local", ({}), stockade::apply, stockade::check_sandbox_local_config)
