// SPDX-License-Identifier: MIT
// Provides ctx.sandboxPolicy.
#include "framework/plugin.hpp"
#include "sandbox/policy.hpp"

namespace stockade {
namespace {

Task<> apply(Context context, SandboxPolicyConfig config) {
  context.provide<SandboxPolicyResolver>(std::make_shared<SandboxPolicyService>(config));
  co_return;
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("sandbox", ({}), stockade::apply)
