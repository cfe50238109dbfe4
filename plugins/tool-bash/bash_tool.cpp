// SPDX-License-Identifier: MIT
#include "plugins/tool-bash/bash_tool.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "bash-sandbox/utf8_text.hpp"
#include "framework/error.hpp"
#include "framework/json.hpp"
#include "sandbox/errors.hpp"

namespace stockade {

namespace {

// Built from named fields only: nothing else that a model sends reaches the executor.
BashRequest read_arguments(const nlohmann::json& arguments) {
  auto refuse = [](const std::string& what, const std::string& name) {
    throw Error("ARGUMENTS_INVALID", what, name);
  };
  if (!arguments.is_object()) refuse("arguments must be an object", "arguments");
  static const std::vector<std::string> known{"command", "description", "timeoutMs", "workdir"};
  for (const auto& item : arguments.items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      refuse("unknown property \"" + item.key() + "\"" + suggestion(item.key(), known), item.key());

  auto text = [&](const char* name) -> std::optional<std::string> {
    auto found = arguments.find(name);
    if (found == arguments.end()) return std::nullopt;
    if (!found->is_string()) refuse("\"" + std::string(name) + "\" must be a string", name);
    return found->get<std::string>();
  };
  auto blank = [](const std::string& value) {
    return value.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
  };

  BashRequest request;
  auto command = text("command");
  if (!command) refuse("missing required property \"command\"", "command");
  if (blank(*command)) refuse("invalid command: expected a non-empty string", "command");
  request.command = *command;
  if (auto description = text("description"); description && blank(*description))
    refuse("invalid description: expected a non-empty string", "description");
  request.workdir = text("workdir");
  if (auto found = arguments.find("timeoutMs"); found != arguments.end()) {
    if (!found->is_number()) refuse("\"timeoutMs\" must be a number", "timeoutMs");
    request.timeout_ms = found->get<double>();
    if (!std::isfinite(*request.timeout_ms) || *request.timeout_ms <= 0)
      refuse("invalid timeoutMs: expected a positive number, got " + json_text(*found),
             "timeoutMs");
  }
  return request;
}

void add_line(std::string& text, const std::string& line) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += line;
}

ToolResult error_result(const BashResult& result) {
  return {"Error: " + valid_utf8(result.error->message), to_json(result), true};
}

}  // namespace

std::string render_result(const BashResult& result) {
  std::string text = text_of(result.out);
  if (result.err.total > 0) {
    add_line(text, "[stderr]\n");
    text += text_of(result.err);
  }
  if (text.empty()) text = "(no output)";
  for (const CapturedStream* stream : {&result.out, &result.err})
    if (stream->truncated)
      add_line(text, "[output truncated; full output: " +
                         (stream->spill_path ? valid_utf8(*stream->spill_path) : "(unavailable)") +
                         "]");
  if (result.timed_out)
    add_line(text, "[timed out after " + std::to_string(result.timeout.count()) + "ms]");
  if (result.sandbox.denied) add_line(text, denial_marker(result.sandbox.mode));
  if (result.signal)
    add_line(text, "[killed by signal: " + signal_name(*result.signal) + "]");
  else if (result.exit_code && *result.exit_code != 0)
    add_line(text, "[exit code: " + std::to_string(*result.exit_code) + "]");
  return text;
}

Task<ToolResult> BashTool::call(nlohmann::json arguments, AbortSignal abort) {
  std::exception_ptr failure;
  SandboxMode mode = shell_->sandbox_mode();
  try {
    BashSpec spec = shell_->resolve(read_arguments(arguments));
    mode = spec.policy.mode;
    auto running = shell_->run(std::move(spec), std::move(abort), nullptr);
    BashResult result = co_await running;
    if (result.error) co_return error_result(result);
    co_return ToolResult{render_result(result), to_json(result), false};
  } catch (...) {
    failure = std::current_exception();
  }
  BashResult failed = failure_result(failure, mode);
  co_return error_result(failed);
}

}  // namespace stockade
