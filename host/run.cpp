// SPDX-License-Identifier: MIT
// `stockade run`: a script of tool calls.
#include <signal.h>
#include <unistd.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "framework/error.hpp"
#include "framework/json.hpp"
#include "host/commands.hpp"
#include "host/output.hpp"
#include "host/pretty.hpp"
#include "host/script_source.hpp"
#include "host/session.hpp"
#include "host/signals.hpp"
#include "plugins/script/script.hpp"
#include "plugins/sessions/session_file.hpp"

namespace stockade {

namespace {

class Printer final : public ResultSink {
 public:
  Printer(Loop& loop, bool pretty)
      : out_(loop, 1),
        pretty_(pretty),
        colour_(isatty(1) && !getenv("NO_COLOR")),
        // Where results do not go to the terminal themselves.
        progress_(isatty(2) && !isatty(1)) {}
  ~Printer() override {
    if (written_ > 0 && progress_) std::cerr << "\r\033[K" << std::flush;
  }

  Task<> on_result(const nlohmann::json& call, const nlohmann::ordered_json& result) override {
    out_.write(pretty_ ? pretty_result(call, result, colour_) : json_text(result) + "\n");
    ++written_;
    if (progress_) std::cerr << "\r\033[K" << written_ << " calls" << std::flush;
    // A reader that is slow holds the script back instead of filling memory.
    Completion<> drained = out_.drained();
    co_await drained;
  }

  void on_comment(const std::string& line) override {
    if (!pretty_) return;
    std::string text = printable(line.substr(line.find('#') + 1));
    out_.write((colour_ ? "\033[1m" + text + "\033[0m" : text) + "\n");
  }

  Task<bool> finish(ScriptSummary summary) {
    if (pretty_) out_.write(pretty_summary(summary));
    Completion<> drained = out_.drained();
    co_await drained;
    co_return true;
  }

  Output& output() { return out_; }

 private:
  static std::string pretty_summary(const ScriptSummary& summary) {
    std::string text = std::to_string(summary.calls) + (summary.calls == 1 ? " call" : " calls");
    const char* separator = ": ";
    for (const auto& [outcome, count] : summary.outcomes) {
      text += separator + std::to_string(count) + " " + outcome;
      separator = ", ";
    }
    if (summary.unmet > 0) text += "; " + std::to_string(summary.unmet) + " not as expected";
    return text + "\n";
  }

  Output out_;
  bool pretty_;
  bool colour_;
  bool progress_;
  std::size_t written_ = 0;
};

// The sessions of one script: that of the command line, and one for each name beside it.
class ScriptSessions {
 public:
  ScriptSessions(Host& host, const RunOptions& options) : host_(host), options_(options) {
    open_[""] = open_session(host, options.composition, {options.session, false, "run"});
  }
  std::shared_ptr<SessionLog> find(const std::string& name) {
    auto& session = open_[name];
    if (!session) {
      std::string id = open_[""]->session().id + "." + name;
      if (!is_session_id(id))
        throw Error("SCRIPT_LINE_INVALID", "\"" + name + "\" is no name of a session", "$.session");
      if (options_.session)
        session = open_session(host_, options_.composition, {id, true, ""});
      else
        session = std::make_shared<MemorySession>(Session{id, std::nullopt, {}});
    }
    return session;
  }

 private:
  Host& host_;
  const RunOptions& options_;
  std::map<std::string, std::shared_ptr<SessionLog>> open_;
};

}  // namespace

int run_script(const RunOptions& options) {
  try {
    Host host(options.composition);
    auto runner = host.service<ScriptRunner>();
    AbortOnSignal abort(host.loop());
    ScriptSource source(host.loop(), options.script);
    ScriptSessions sessions(host, options);
    Printer printer(host.loop(), options.pretty);
    AbortSubscription stopping =
        abort.signal().on_abort([&printer] { printer.output().set_patience(kLastPatience); });
    printer.output().on_broken([&abort] { abort.abort(SIGPIPE, "standard output was closed"); });
    ScriptOptions script;
    script.session = [&sessions](const std::string& name) { return sessions.find(name); };
    script.as_they_come = options.as_they_come;
    ScriptSummary summary =
        host.run(runner->run(source, printer, std::move(script), abort.signal()));
    host.run(printer.finish(summary));
    if (abort.caught()) return 128 + abort.caught();
    return summary.errors == 0 && summary.unmet == 0 ? 0 : 1;
  } catch (...) {
    return report_failure(std::current_exception());
  }
}

}  // namespace stockade
