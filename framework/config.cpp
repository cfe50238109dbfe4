// SPDX-License-Identifier: MIT
#include "framework/config.hpp"

#include <set>

#include "framework/json.hpp"

namespace stockade {

void throw_config_issues(std::string_view source, const std::vector<ConfigIssue>& issues) {
  if (issues.empty()) return;
  std::string text = std::string(source) + ": invalid config:";
  for (const auto& issue : issues) text += "\n  - " + issue.path + ": " + issue.message;
  throw Error("CONFIG_INVALID", text, issues.front().path);
}

namespace {

constexpr int kMaxDepth = 64;

std::string excerpt(const nlohmann::json& value) {
  std::string text = json_text(value);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

std::string position(std::string_view text, std::size_t byte) {
  std::size_t line = 1;
  std::size_t column = 1;
  for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    ++column;
    if (text[i] == '\n') {
      ++line;
      column = 1;
    }
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace

std::string detail::describe_json(const nlohmann::json& value) {
  switch (value.type()) {
    case nlohmann::json::value_t::null:
      return "null";
    case nlohmann::json::value_t::object:
      return "an object";
    case nlohmann::json::value_t::array:
      return "an array";
    case nlohmann::json::value_t::string:
      return "the string " + excerpt(value);
    case nlohmann::json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    default:
      return "the number " + excerpt(value);
  }
}

nlohmann::json parse_config(std::string_view text, std::string_view source,
                            std::string_view operand) {
  auto invalid = [&](const std::string& what) {
    return Error("CONFIG_INVALID", std::string(source) + ": " + what,
                 std::string(operand.empty() ? source : operand));
  };
  if (text.substr(0, 3) == "\xEF\xBB\xBF")
    throw invalid("begins with a byte order mark; save the file as UTF-8 without one");
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw invalid("is empty; expected a JSON object");

  // JSON readers keep the last of two equal keys in silence; a config must not.
  std::vector<std::set<std::string>> seen;
  std::string duplicate;
  auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    // Values are read, copied and destroyed recursively; a deep one would overflow the stack.
    if (depth > kMaxDepth)
      throw invalid("is nested deeper than " + std::to_string(kMaxDepth) + " levels");
    using E = nlohmann::json::parse_event_t;
    if (event == E::object_start) seen.emplace_back();
    if (event == E::object_end) seen.pop_back();
    if (event == E::key && !seen.back().insert(parsed.get<std::string>()).second &&
        duplicate.empty())
      duplicate = parsed.get<std::string>();
    return true;
  };
  try {
    auto json = nlohmann::json::parse(text, watch);
    if (!duplicate.empty())
      throw invalid("the key \"" + duplicate + "\" stands twice in one object");
    return json;
  } catch (const nlohmann::json::parse_error& error) {
    // `[json.exception.parse_error.101] parse error at line 1, column 5: ` and then the reason.
    std::string what = error.what();
    if (auto colon = what.find(": "); colon != std::string::npos) what = what.substr(colon + 2);
    throw invalid("malformed JSON at " + position(text, error.byte) + ": " + what);
  } catch (const nlohmann::json::out_of_range& error) {
    throw invalid(std::string("malformed JSON: ") + error.what());
  }
}

}  // namespace stockade
