// SPDX-License-Identifier: MIT
#include "plugins/script/script_runner.hpp"

#include <nlohmann/json.hpp>
#include <vector>

#include "framework/config.hpp"
#include "framework/error.hpp"

namespace stockade {

namespace {

struct ScriptLine {
  nlohmann::json id;
  std::string tool;
  nlohmann::json arguments = nlohmann::json::object();
};

nlohmann::ordered_json tool_result_json(const nlohmann::json& id, const ToolResult& result) {
  return {{"id", id},
          {"content", {{{"type", "text"}, {"text", result.text}}}},
          {"structuredContent", result.structured},
          {"isError", result.is_error}};
}

nlohmann::ordered_json line_error(const nlohmann::json& id, std::size_t number,
                                  const std::string& code, const std::string& what) {
  std::string message = "line " + std::to_string(number) + ": " + what;
  ToolResult result{"Error: " + message, {{"error", {{"code", code}, {"message", message}}}}, true};
  auto json = tool_result_json(id, result);
  json["line"] = number;
  return json;
}

}  // namespace

Task<ScriptSummary> LineScriptRunner::run(LineSource& source, ResultSink& sink,
                                          std::shared_ptr<SessionLog> session, AbortSignal abort) {
  ScriptSummary summary;
  for (std::size_t number = 1; !abort.aborted(); ++number) {
    auto reading = source.next_line(abort);
    std::optional<std::string> text = co_await reading;
    if (!text) break;
    if (text->find_first_not_of(" \t\r") == std::string::npos) continue;

    nlohmann::json call;
    ScriptLine line;
    nlohmann::ordered_json result;
    std::shared_ptr<Tool> tool;
    try {
      if (text->size() > kMaxScriptLine)
        throw Error("SCRIPT_LINE_INVALID",
                    "it is longer than " + std::to_string(kMaxScriptLine) + " bytes");
      call = parse_config(*text, "the line");
      if (call.is_object() && call.contains("id")) line.id = call["id"];
      std::vector<ConfigIssue> issues;
      line = read_config<ScriptLine>(call, issues);
      if (!line.id.is_null() && !line.id.is_string() && !line.id.is_number()) {
        issues.push_back(
            {"$.id", "expected a string or a number, found " + detail::describe_json(line.id)});
        line.id = nullptr;
      }
      if (issues.empty() && line.tool.empty())
        issues.push_back({"$.tool", "expected the name of a tool, such as \"bash\""});
      throw_config_issues("the line", issues);
      tool = find_tool_(line.tool);
      if (!tool)
        throw Error("TOOL_UNKNOWN",
                    "there is no tool \"" + line.tool + "\"" + suggestion(line.tool, {"bash"}));
    } catch (const Error& error) {
      std::string code = error.code() == "TOOL_UNKNOWN" ? error.code() : "SCRIPT_LINE_INVALID";
      result = line_error(line.id, number, code, error.what());
    }

    if (tool) {
      ToolCall made;
      made.arguments = line.arguments;
      made.abort = abort;
      made.id = line.id.is_string() ? line.id.get<std::string>() : "line-" + std::to_string(number);
      made.session = session;
      auto running = tool->call(std::move(made));
      ToolResult outcome = co_await running;
      result = tool_result_json(line.id, outcome);
    }
    ++summary.calls;
    if (result["isError"].get<bool>()) ++summary.errors;
    auto writing = sink.on_result(call, result);
    co_await writing;
  }
  co_return summary;
}

}  // namespace stockade
