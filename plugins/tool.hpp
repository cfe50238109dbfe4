// SPDX-License-Identifier: MIT
// The seam between what makes tool calls (a script, an MCP server) and the tools.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "framework/abort.hpp"
#include "framework/task.hpp"
#include "plugins/session.hpp"

namespace stockade {

class Answerer;

// One call, and what its maker offers with it.
struct ToolCall {
  nlohmann::json arguments = nlohmann::json::object();
  AbortSignal abort{};
  std::string id{};                       // names the call in approvals and logs
  std::shared_ptr<SessionLog> session{};  // null: the call belongs to nobody
  std::shared_ptr<Answerer> asker{};      // asks the maker of the call; null: it cannot be asked
  std::function<void(std::string_view bytes)> on_output{};  // as a command prints, both streams
};

struct ToolResult {
  std::string text;                   // for the model
  nlohmann::ordered_json structured;  // the same as data
  bool is_error = false;  // the call could not be made; a command that failed is no error
};

struct ToolDescription {
  std::string name;
  std::string title;
  std::string description;               // for the model
  nlohmann::ordered_json input_schema;   // JSON Schema 2020-12, type object
  nlohmann::ordered_json output_schema;  // of ToolResult::structured where it is no error
  nlohmann::ordered_json annotations;    // MCP's: readOnlyHint and so on
};

// A tool NAME is the service `tool:NAME/1`.
class Tool {
 public:
  virtual ~Tool() = default;
  virtual ToolDescription describe() const = 0;
  // Never throws: bad arguments are an error result, and nothing runs. Hold the tool while it runs.
  virtual Task<ToolResult> call(ToolCall call) = 0;
};

inline std::string tool_service(std::string_view name) {
  return "tool:" + std::string(name) + "/1";
}

// The error result of a call that could not be made.
inline ToolResult tool_error(const std::string& code, const std::string& message) {
  return {"Error: " + message, {{"error", {{"code", code}, {"message", message}}}}, true};
}

}  // namespace stockade
