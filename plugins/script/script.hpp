// SPDX-License-Identifier: MIT
// `ctx.script`: runs a script of tool calls, one JSON object a line.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
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

// Where results go, one after the other.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  // `call` is the line as read, null for a line that is no JSON. `result` has `id`, `content`,
  // `structuredContent` and `isError`; `line` (its number, from 1) when the line itself is at
  // fault; `expectation` where the line had one: {"met": …, "mismatches": […]}.
  virtual Task<> on_result(const nlohmann::json& call, const nlohmann::ordered_json& result) = 0;
  // A line that begins with `#`, as it stands.
  virtual void on_comment(const std::string&) {}
};

struct ScriptOptions {
  // The session that a line names, "" for one that names none. May throw; the line then fails.
  std::function<std::shared_ptr<SessionLog>(const std::string& name)> session;
  bool as_they_come = false;  // results, instead of in the order of the script
  std::size_t max_parallel = 16;
};

struct ScriptSummary {
  std::size_t calls = 0;
  std::size_t errors = 0;  // results with isError that no expectation was met by
  std::size_t unmet = 0;   // expectations
  std::map<std::string, std::size_t> outcomes;
};

class ScriptRunner {
 public:
  static constexpr std::string_view service = "script/1";
  virtual ~ScriptRunner() = default;
  // One call after the other, but for neighbours that are `parallel`. Every line that is not blank
  // and no comment gets exactly one result, a bad one an error result, and the rest still runs.
  // Source and sink outlive the task; hold the service meanwhile.
  virtual Task<ScriptSummary> run(LineSource& source, ResultSink& sink, ScriptOptions options,
                                  AbortSignal abort) = 0;
};

}  // namespace stockade
