// SPDX-License-Identifier: MIT
#include "plugins/script/script_line.hpp"

#include <algorithm>

#include "bash-sandbox/result.hpp"
#include "framework/config.hpp"
#include "framework/error.hpp"
#include "framework/json.hpp"

namespace stockade {

void read_script_line(const nlohmann::json& json, ScriptLine& line) {
  if (json.is_object() && json.contains("id")) line.id = json["id"];
  std::vector<ConfigIssue> issues;
  line = read_config<ScriptLine>(json, issues);
  if (!line.id.is_null() && !line.id.is_string() && !line.id.is_number()) {
    issues.push_back(
        {"$.id", "expected a string or a number, found " + detail::describe_json(line.id)});
    line.id = nullptr;
  }
  if (issues.empty() && line.tool.empty())
    issues.push_back({"$.tool", "expected the name of a tool, such as \"bash\""});
  if (line.expect && line.expect->outcome) {
    // A misspelt outcome would be a test that can only fail, or one that is wrong.
    std::vector<std::string> names;
    for (std::size_t i = 0; i < kEnumerators<BashOutcome>.size(); ++i)
      if (auto name = to_string(static_cast<BashOutcome>(i)); !name.empty()) names.push_back(name);
    if (std::find(names.begin(), names.end(), *line.expect->outcome) == names.end())
      issues.push_back({"$.expect.outcome", "unknown outcome \"" + *line.expect->outcome + "\"" +
                                                suggestion(*line.expect->outcome, names)});
  }
  try {
    throw_config_issues("the line", issues);
  } catch (const Error& error) {
    throw Error("SCRIPT_LINE_INVALID", error.what(), error.operand());
  }
}

std::vector<std::string> mismatches(const Expectation& expected,
                                    const nlohmann::ordered_json& result) {
  std::vector<std::string> found;
  using Json = nlohmann::ordered_json;
  const Json& data = result["structuredContent"];
  auto compare = [&](const char* what, const Json& wanted, const Json& got) {
    if (wanted != got)
      found.push_back(std::string(what) + ": expected " + json_text(wanted) + ", got " +
                      json_text(got));
  };
  auto member = [](const Json& object, const char* key) {
    return object.is_object() ? object.value(key, Json()) : Json();
  };
  if (expected.outcome) compare("outcome", *expected.outcome, member(data, "outcome"));
  if (expected.exit_code) compare("exitCode", *expected.exit_code, member(data, "exitCode"));
  if (expected.denied)
    compare("denied", *expected.denied, member(member(data, "sandbox"), "denied"));
  std::string text = result["content"][0]["text"];
  if (expected.text && text.find(*expected.text) == std::string::npos)
    found.push_back("text: " + json_text(Json(*expected.text)) + " is not in it");
  if (expected.no_text && text.find(*expected.no_text) != std::string::npos)
    found.push_back("text: " + json_text(Json(*expected.no_text)) + " is in it");
  Json code = member(member(data, "error"), "code");
  if (expected.error)
    compare("error", *expected.error, code);
  else if (result["isError"].get<bool>() && !expected.outcome)
    found.push_back("the call failed: " + json_text(code));
  return found;
}

}  // namespace stockade
