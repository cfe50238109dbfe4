// SPDX-License-Identifier: MIT
// `ctx.script`: runs a script of tool calls, one JSON object a line.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "framework/abort.hpp"
#include "framework/task.hpp"
#include "plugins/session.hpp"

namespace stockade {

inline constexpr std::size_t kMaxScriptLine = 1U << 20;  // bytes

// Where lines come from.
class LineSource {
 public:
  virtual ~LineSource() = default;
  // Without its newline; absent at the end, and when `abort` ends the wait. A line longer than
  // kMaxScriptLine comes cut to one byte more than that.
  virtual Task<std::optional<std::string>> next_line(AbortSignal abort) = 0;
};

// Where results go, in the order of the script.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  // `call` is the line as read, null for a line that is no JSON. `result` has `id`, `content`,
  // `structuredContent` and `isError`, and `line` (its number, from 1) when the line itself is at
  // fault.
  virtual Task<> on_result(const nlohmann::json& call, const nlohmann::ordered_json& result) = 0;
};

struct ScriptSummary {
  std::size_t calls = 0;
  std::size_t errors = 0;  // results with isError
};

class ScriptRunner {
 public:
  static constexpr std::string_view service = "script/1";
  virtual ~ScriptRunner() = default;
  // One call after the other. Every line that is not blank gets exactly one result, a bad one an
  // error result, and the rest still runs. Source and sink outlive the task; hold the service
  // meanwhile.
  // Calls belong to `session`.
  virtual Task<ScriptSummary> run(LineSource& source, ResultSink& sink,
                                  std::shared_ptr<SessionLog> session, AbortSignal abort) = 0;
};

}  // namespace stockade
