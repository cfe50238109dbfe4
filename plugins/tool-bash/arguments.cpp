// SPDX-License-Identifier: MIT
#include "plugins/tool-bash/arguments.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "bash-sandbox/result.hpp"
#include "framework/error.hpp"
#include "framework/fields.hpp"
#include "framework/json.hpp"

namespace stockade {

namespace {

using Json = nlohmann::ordered_json;

void refuse(const std::string& what, const std::string& name) {
  throw Error("ARGUMENTS_INVALID", what, name);
}

std::optional<std::string> text(const nlohmann::json& arguments, const char* name) {
  auto found = arguments.find(name);
  if (found == arguments.end()) return std::nullopt;
  if (!found->is_string()) refuse("\"" + std::string(name) + "\" must be a string", name);
  return found->get<std::string>();
}

bool blank(const std::string& value) {
  return value.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
}

}  // namespace

BashArguments read_bash_arguments(const nlohmann::json& arguments, const BashAbilities& abilities) {
  if (!arguments.is_object()) refuse("arguments must be an object", "arguments");
  static const std::vector<std::string> known{
      "command",           "description",         "timeoutMs",    "workdir",
      "run_in_background", "sandbox_permissions", "justification"};
  for (const auto& item : arguments.items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      refuse("unknown property \"" + item.key() + "\"" + suggestion(item.key(), known), item.key());

  BashArguments read;
  auto command = text(arguments, "command");
  if (!command) refuse("missing required property \"command\"", "command");
  if (blank(*command)) refuse("invalid command: expected a non-empty string", "command");
  read.command = *command;
  read.description = text(arguments, "description");
  if (read.description && blank(*read.description))
    refuse("invalid description: expected a non-empty string", "description");
  read.workdir = text(arguments, "workdir");
  if (auto found = arguments.find("timeoutMs"); found != arguments.end()) {
    if (!found->is_number()) refuse("\"timeoutMs\" must be a number", "timeoutMs");
    read.timeout_ms = found->get<double>();
    if (!std::isfinite(*read.timeout_ms) || *read.timeout_ms <= 0)
      refuse("invalid timeoutMs: expected a positive number, got " + json_text(*found),
             "timeoutMs");
  }
  if (auto found = arguments.find("run_in_background"); found != arguments.end()) {
    if (!found->is_boolean())
      refuse("\"run_in_background\" must be a boolean", "run_in_background");
    read.run_in_background = found->get<bool>();
    if (read.run_in_background && !abilities.background)
      refuse("run_in_background is disabled for this deployment (enableRunInBackground: false)",
             "run_in_background");
  }
  read.escalation = {text(arguments, "sandbox_permissions"), text(arguments, "justification")};
  if (read.escalation.sandbox_permissions && !abilities.escalation)
    refuse(
        "sandbox_permissions is not available in this composition (no sandboxing executor to "
        "escalate)",
        "sandbox_permissions");
  return read;
}

Json bash_input_schema(const BashAbilities& abilities) {
  auto property = [](const char* type, const char* description) {
    return Json{{"type", type}, {"description", description}};
  };
  Json properties{
      {"command", property("string", "The command, as text for bash.")},
      {"description", property("string", "What the command is for, in a few words.")},
      {"timeoutMs", property("number",
                             "End the command after this many milliseconds. A default and a "
                             "maximum apply.")},
      {"workdir", property("string",
                           "Working directory: absolute, or relative to the workspace. Default: "
                           "the workspace.")}};
  properties["timeoutMs"]["exclusiveMinimum"] = 0;
  if (abilities.background)
    properties["run_in_background"] = property(
        "boolean",
        "Return at once with a job id; read the output with job_output, end it with job_kill.");
  if (abilities.escalation) {
    properties["sandbox_permissions"] = property(
        "string",
        "Only after a denial, to retry the same command once under this wider mode. The user is "
        "asked. Choose the narrowest mode that suffices.");
    Json names = Json::array();
    for (SandboxMode mode : escalation_targets()) names.push_back(to_string(mode));
    properties["sandbox_permissions"]["enum"] = std::move(names);
    properties["justification"] = property(
        "string", "Required with sandbox_permissions: one sentence that the user will read.");
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", {"command"}},
          {"additionalProperties", false}};
}

Json bash_output_schema() {
  auto type = [](Json types, const char* description) {
    return Json{{"type", std::move(types)}, {"description", description}};
  };
  Json outcomes = Json::array();
  for (std::string_view name : kEnumerators<BashOutcome>) {
    std::string text(name);
    std::replace(text.begin(), text.end(), '_', '-');
    if (!text.empty()) outcomes.push_back(std::move(text));
  }
  Json stream{{"type", "object"},
              {"properties",
               {{"text", type("string", "All of it, or the last part.")},
                {"truncated", type("boolean", "Whether more was written than is in text.")},
                {"bytes", type("integer", "How many bytes the command wrote.")},
                {"spillPath", type("string", "A file with the whole stream.")}}}};
  Json sandbox{{"type", "object"},
               {"properties",
                {{"mode", type("string", "The mode that the call had.")},
                 {"backend", type("string", "What confined it; absent when nothing did.")},
                 {"enforcement", type("string", "full or partial.")},
                 {"denied", type("boolean", "Whether the sandbox stopped a file effect.")},
                 {"runnerFailed", type("boolean", "Whether the sandbox itself failed.")},
                 {"ran", type({"boolean", "null"}, "Whether the command ran; null: unknown.")},
                 {"evidence", type("string", "The line of stderr that the verdict rests on.")}}}};
  return {{"type", "object"},
          {"properties",
           {{"outcome", {{"type", "string"}, {"enum", std::move(outcomes)}}},
            {"exitCode", type({"integer", "null"}, "Null when a signal ended it.")},
            {"signal", type({"string", "null"}, "Such as SIGTERM.")},
            {"timedOut", type("boolean", "Whether timeoutMs ended it.")},
            {"aborted", type("boolean", "Whether the call was cancelled.")},
            {"timeoutMs", type("number", "The timeout that applied.")},
            {"stdout", stream},
            {"stderr", stream},
            {"sandbox", std::move(sandbox)},
            {"durationMs", type("number", "From start to end.")},
            {"kind", type("string", "`background` for a job that was started.")},
            {"jobId", type("string", "For job_output and job_kill.")}}},
          {"anyOf", {{{"required", {"outcome"}}}, {{"required", {"kind", "jobId"}}}}}};
}

}  // namespace stockade
