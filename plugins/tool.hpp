// SPDX-License-Identifier: MIT
// The seam between what makes tool calls (a script, an MCP server) and the tools.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "framework/abort.hpp"
#include "framework/task.hpp"

namespace stockade {

struct ToolResult {
  std::string text;                   // for the model
  nlohmann::ordered_json structured;  // the same as data
  bool is_error = false;  // the call could not be made; a command that failed is no error
};

// A tool NAME is the service `tool:NAME/1`.
class Tool {
 public:
  virtual ~Tool() = default;
  // Never throws: bad arguments are an error result, and nothing runs. Hold the tool while it runs.
  virtual Task<ToolResult> call(nlohmann::json arguments, AbortSignal abort) = 0;
};

inline std::string tool_service(std::string_view name) {
  return "tool:" + std::string(name) + "/1";
}

}  // namespace stockade
