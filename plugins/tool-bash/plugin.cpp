// SPDX-License-Identifier: MIT
#include "framework/plugin.hpp"
#include "plugins/tool-bash/bash_tool.hpp"

namespace stockade {
namespace {

struct ToolBashConfig {
  bool enable_run_in_background = true;  // over the plugin `jobs`
  bool enable_escalation = true;         // over the plugin `approval`
};

Task<> apply(Context context, ToolBashConfig config) {
  BashToolServices services{context.get<Shell>(), context.get<SandboxPolicyResolver>(),
                            [context] { return context.find<Approval>(); },
                            [context] { return context.find<Jobs>(); }, context.code()};
  BashAbilities abilities{config.enable_run_in_background, config.enable_escalation};
  context.provide_as<Tool>(
      BashTool::service,
      std::make_shared<BashTool>(context.loop(), std::move(services), abilities, context.log()));
  co_return;
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("tool-bash", ({"shell/1", "sandboxPolicy/1"}), stockade::apply)
