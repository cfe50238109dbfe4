// SPDX-License-Identifier: MIT
#include "plugins/script/script_runner.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "framework/completion.hpp"
#include "framework/config.hpp"
#include "framework/error.hpp"
#include "plugins/script/outcome.hpp"
#include "plugins/script/script_line.hpp"

namespace stockade {

namespace {

using Json = nlohmann::ordered_json;

struct Item {
  std::size_t number = 0;  // of its line
  nlohmann::json call;     // as read
  ScriptLine line;
  Json result;
  std::optional<std::string> comment;  // instead of all this
};

// What the reader of lines, the calls and the writer of results share.
struct Progress {
  explicit Progress(Loop& loop_of_run) : loop(loop_of_run), changed(loop_of_run) {}

  void notify() { std::exchange(changed, Completion<>(loop)).settle(); }
  void finish(std::size_t index, Item item) {
    done.emplace(index, std::move(item));
    notify();
  }

  Loop& loop;
  Completion<> changed;
  std::map<std::size_t, Item> done;  // and not written yet, by place in the script
  std::size_t begun = 0;
  std::size_t running = 0;
  std::size_t written = 0;
  std::exception_ptr failure;
  ScriptSummary summary;
};

Json tool_result_json(const nlohmann::json& id, const ToolResult& result) {
  return {{"id", id},
          {"content", {{{"type", "text"}, {"text", result.text}}}},
          {"structuredContent", result.structured},
          {"isError", result.is_error}};
}

Json line_error(const Item& item, const std::string& code, const std::string& what) {
  Json json = tool_result_json(
      item.line.id, tool_error(code, "line " + std::to_string(item.number) + ": " + what));
  json["line"] = item.number;
  return json;
}

void judge(Item& item, ScriptSummary& summary) {
  ++summary.calls;
  bool expected = false;
  if (item.line.expect) {
    auto wrong = mismatches(*item.line.expect, item.result);
    expected = wrong.empty();
    if (!expected) ++summary.unmet;
    item.result["expectation"] = {{"met", expected}};
    if (!expected) item.result["expectation"]["mismatches"] = wrong;
  }
  if (item.result["isError"].get<bool>() && !expected) ++summary.errors;
  ++summary.outcomes[outcome_of(item.result)];
}

Task<> write_results(std::shared_ptr<Progress> progress, ResultSink& sink, bool as_they_come) {
  for (;;) {
    auto next = as_they_come ? progress->done.begin() : progress->done.find(progress->written);
    if (next == progress->done.end()) {
      Completion<> changed = progress->changed;
      co_await changed;
      continue;
    }
    Item item = std::move(next->second);
    progress->done.erase(next);
    if (item.comment) {
      sink.on_comment(*item.comment);
    } else {
      judge(item, progress->summary);
      auto writing = sink.on_result(item.call, item.result);
      co_await writing;
    }
    ++progress->written;
    progress->notify();
  }
}

Task<> make_call(std::shared_ptr<Progress> progress, std::size_t index, Item item,
                 std::shared_ptr<Tool> tool, ToolCall made) {
  auto running = tool->call(std::move(made));
  ToolResult outcome = co_await running;
  item.result = tool_result_json(item.line.id, outcome);
  --progress->running;
  progress->finish(index, std::move(item));
}

Task<> until(std::shared_ptr<Progress> progress, std::function<bool(const Progress&)> holds) {
  while (!progress->failure && !holds(*progress)) {
    Completion<> changed = progress->changed;
    co_await changed;
  }
  if (progress->failure) std::rethrow_exception(progress->failure);
}

}  // namespace

Task<ScriptSummary> LineScriptRunner::run(LineSource& source, ResultSink& sink,
                                          ScriptOptions options, AbortSignal abort) {
  auto progress = std::make_shared<Progress>(loop_);
  TaskScope scope(loop_, [progress](std::exception_ptr error) {
    progress->failure = error;
    progress->notify();
  });
  scope.start(write_results(progress, sink, options.as_they_come));

  for (std::size_t number = 1; !abort.aborted(); ++number) {
    auto reading = source.next_line(abort);
    std::optional<std::string> text = co_await reading;
    if (!text) break;
    std::size_t first = text->find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;

    Item item;
    item.number = number;
    if ((*text)[first] == '#') {
      item.comment = std::move(text);
      progress->finish(progress->begun++, std::move(item));
      continue;
    }
    std::shared_ptr<Tool> tool;
    ToolCall made;
    try {
      if (text->size() > kMaxScriptLine)
        throw Error("SCRIPT_LINE_INVALID",
                    "it is longer than " + std::to_string(kMaxScriptLine) + " bytes");
      item.call = parse_config(*text, "the line");
      read_script_line(item.call, item.line);
      made.session = options.session ? options.session(item.line.session) : nullptr;
      tool = find_tool_(item.line.tool);
      if (!tool)
        throw Error("TOOL_UNKNOWN", "there is no tool \"" + item.line.tool + "\"" +
                                        suggestion(item.line.tool, {"bash"}));
    } catch (const Error& error) {
      std::string code = error.code() == "CONFIG_INVALID" ? "SCRIPT_LINE_INVALID" : error.code();
      item.result = line_error(item, code, error.what());
      tool = nullptr;
    }

    const std::size_t index = progress->begun++;
    const bool parallel = item.line.parallel;
    auto room = [index, parallel, most = options.max_parallel](const Progress& now) {
      return parallel ? now.running < most : now.written == index;
    };
    auto waiting = until(progress, room);
    co_await waiting;
    if (tool) {
      made.arguments = item.line.arguments;
      made.abort = abort;
      made.id = item.line.id.is_string() ? item.line.id.get<std::string>()
                                         : "line-" + std::to_string(number);
      ++progress->running;
      scope.start(make_call(progress, index, std::move(item), std::move(tool), std::move(made)));
    } else {
      progress->finish(index, std::move(item));
    }
    if (parallel) continue;
    auto finishing = until(progress, [index](const Progress& now) { return now.written > index; });
    co_await finishing;
  }
  auto ending = until(progress, [](const Progress& now) { return now.written == now.begun; });
  co_await ending;
  co_return progress->summary;
}

}  // namespace stockade
