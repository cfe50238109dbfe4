// SPDX-License-Identifier: MIT
#include "framework/plugin.hpp"
#include "plugins/tool-bash/bash_tool.hpp"

namespace stockade {
namespace {

struct ToolBashConfig {};

Task<> apply(Context context, ToolBashConfig) {
  auto tool = std::make_shared<BashTool>(context.get<Shell>());
  context.provide_as<Tool>(BashTool::service, std::move(tool));
  co_return;
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("tool-bash", ({"shell/1"}), stockade::apply)
