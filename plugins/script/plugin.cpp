// SPDX-License-Identifier: MIT
#include "framework/plugin.hpp"
#include "plugins/script/script_runner.hpp"

namespace stockade {
namespace {

struct ScriptConfig {};

Task<> apply(Context context, ScriptConfig) {
  context.provide<ScriptRunner>(std::make_shared<LineScriptRunner>(
      context.loop(),
      [context](std::string_view name) { return context.find_as<Tool>(tool_service(name)); }));
  co_return;
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("script", ({}), stockade::apply)
