// SPDX-License-Identifier: MIT
// `stockade run`: a script of tool calls.
#include <signal.h>
#include <unistd.h>

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

namespace stockade {

namespace {

class Printer final : public ResultSink {
 public:
  Printer(Loop& loop, bool pretty)
      : out_(loop, 1), pretty_(pretty), colour_(isatty(1) && !getenv("NO_COLOR")) {}

  Task<> on_result(const nlohmann::json& call, const nlohmann::ordered_json& result) override {
    out_.write(pretty_ ? pretty_result(call, result, colour_) : json_text(result) + "\n");
    // A reader that is slow holds the script back instead of filling memory.
    Completion<> drained = out_.drained();
    co_await drained;
  }

  Output& output() { return out_; }

 private:
  Output out_;
  bool pretty_;
  bool colour_;
};

}  // namespace

int run_script(const RunOptions& options) {
  try {
    Host host(options.composition);
    auto runner = host.service<ScriptRunner>();
    AbortOnSignal abort(host.loop());
    ScriptSource source(host.loop(), options.script);
    Printer printer(host.loop(), options.pretty);
    AbortSubscription abandon = abort.signal().on_abort([&printer] { printer.output().abandon(); });
    printer.output().on_broken([&abort] { abort.abort(SIGPIPE, "standard output was closed"); });
    ScriptSummary summary =
        host.run(runner->run(source, printer, open_session(host, {}), abort.signal()));
    if (abort.caught()) return 128 + abort.caught();
    return summary.errors == 0 ? 0 : 1;
  } catch (...) {
    return report_failure(std::current_exception());
  }
}

}  // namespace stockade
