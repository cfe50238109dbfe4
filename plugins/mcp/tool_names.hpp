// SPDX-License-Identifier: MIT
// Which tools an MCP server offers: those of a list that are there at the moment.
#pragma once

#include <string>
#include <vector>

#include "framework/context.hpp"
#include "plugins/mcp/connection.hpp"

namespace stockade::mcp {

// A function, as g++ 12 crashes on a braced list in a config struct.
inline std::vector<std::string> default_tools() {
  return {"bash", "job_output", "job_list", "job_kill"};
}

inline ToolBox tool_box(const Context& context, const std::vector<std::string>& names) {
  auto find = [context, names](std::string_view name) -> std::shared_ptr<Tool> {
    for (const auto& each : names)
      if (each == name) return context.find_as<Tool>(tool_service(name));
    return nullptr;
  };
  return {[find, names] {
            std::vector<std::shared_ptr<Tool>> all;
            for (const auto& name : names)
              if (auto tool = find(name)) all.push_back(std::move(tool));
            return all;
          },
          find};
}

}  // namespace stockade::mcp
