// SPDX-License-Identifier: MIT
// `stockade exec`: one command.
#include <signal.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "bash-sandbox/shell.hpp"
#include "bash-sandbox/utf8_text.hpp"
#include "framework/error.hpp"
#include "framework/json.hpp"
#include "host/commands.hpp"
#include "host/output.hpp"
#include "host/signals.hpp"

namespace stockade {

namespace {

// Several words are a program and its arguments, exactly as given; so each is quoted for bash.
std::string bash_text(const std::vector<std::string>& words) {
  if (words.size() == 1) return words.front();
  std::string text;
  for (const auto& word : words) {
    if (!text.empty()) text += ' ';
    text += '\'';
    for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

// Passes a command's streams on as they come.
class PassThrough final : public OutputSink {
 public:
  PassThrough(Loop& loop, AbortOnSignal& abort) : out_(loop, 1), err_(loop, 2) {
    stopping_ = abort.signal().on_abort([this] {
      out_.set_patience(kLastPatience);
      err_.set_patience(kLastPatience);
    });
    out_.on_drained([this] { resume(Stream::output); });
    err_.on_drained([this] { resume(Stream::error); });
    // Nobody reads any more, as in `stockade exec -- yes | head`.
    out_.on_broken([&abort] { abort.abort(SIGPIPE, "standard output was closed"); });
  }
  void on_output(Stream stream, std::span<const char> bytes) override {
    output(stream).write({bytes.data(), bytes.size()});
  }
  bool full(Stream stream) override { return output(stream).saturated(); }
  void on_resume(std::function<void(Stream)> resume) override { resume_ = std::move(resume); }

  Output& output(Stream stream) { return stream == Stream::output ? out_ : err_; }

 private:
  void resume(Stream stream) {
    if (resume_) resume_(stream);
  }
  Output out_;
  Output err_;
  std::function<void(Stream)> resume_;
  AbortSubscription stopping_;
};

int exit_status(const BashResult& result, int caught) {
  if (result.error) return kExitNotRun;
  if (result.timed_out) return kExitTimedOut;
  if (result.aborted) return 128 + (caught ? caught : SIGTERM);
  if (result.signal) return 128 + *result.signal;
  return result.exit_code.value_or(kExitNotRun);
}

// One line, where the sandbox or the host did something that the command's own streams do not tell.
std::string notice(const BashResult& result) {
  std::string text;
  if (result.error) {
    text = "the command was not run: " + result.error->message + " [" + result.error->code + "]";
  } else if (result.timed_out) {
    text = "timed out after " + std::to_string(result.timeout.count()) + " ms";
  } else if (result.aborted) {
    text = "aborted";
  } else if (result.sandbox.denied) {
    text = "denied: " + to_string(result.sandbox.mode) + " mode stopped a file effect (" +
           result.sandbox.backend.value_or("?") + "): " + result.sandbox.evidence.value_or("");
  } else if (result.signal) {
    text = "killed by " + signal_name(*result.signal);
  }
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text.empty() ? text : "stockade: " + valid_utf8(text) + "\n";
}

Task<BashResult> run_one(std::shared_ptr<Shell> shell, ExecOptions options, AbortSignal abort,
                         PassThrough* streams) {
  std::exception_ptr failure;
  SandboxMode mode = shell->sandbox_mode();
  try {
    BashRequest request;
    request.command = bash_text(options.command);
    request.timeout_ms = options.timeout_ms;
    request.spill = streams == nullptr;
    BashSpec spec = shell->resolve(request);
    auto running = shell->run(std::move(spec), std::move(abort), streams);
    BashResult result = co_await running;
    co_return result;
  } catch (...) {
    failure = std::current_exception();
  }
  co_return failure_result(failure, mode);
}

// False when standard output could not be written.
Task<bool> finish(PassThrough& streams, Stream stream, std::string last_words) {
  streams.output(stream).write(last_words);
  for (Stream each : {Stream::output, Stream::error}) {
    Completion<> drained = streams.output(each).drained();
    co_await drained;
  }
  co_return !streams.output(Stream::output).broken();
}

std::string json_line(const BashResult& result) {
  return json_text(to_json(result)) + "\n";
}

}  // namespace

int report_failure(const std::exception_ptr& error) {
  std::cerr << "stockade: " << describe(error) << " [" << code_of(error, "INTERNAL") << "]"
            << std::endl;
  return kExitNotRun;
}

int exec_command(const ExecOptions& options) {
  try {
    CompositionOptions composition = options.composition;
    composition.keep_spills = options.json;
    Host host(composition);
    auto shell = host.service<Shell>();
    AbortOnSignal abort(host.loop());
    PassThrough streams(host.loop(), abort);
    BashResult result =
        host.run(run_one(shell, options, abort.signal(), options.json ? nullptr : &streams));
    bool written = host.run(options.json ? finish(streams, Stream::output, json_line(result))
                                         : finish(streams, Stream::error, notice(result)));
    int status = exit_status(result, abort.caught());
    if (written || result.aborted) return status;
    if (abort.caught() != 0 && abort.caught() != SIGPIPE) return 128 + abort.caught();
    std::cerr << "stockade: cannot write to standard output; the result is lost" << std::endl;
    return kExitNotRun;
  } catch (...) {
    auto error = std::current_exception();
    if (!options.json) return report_failure(error);
    auto mode = options.composition.mode ? parse_mode(*options.composition.mode) : std::nullopt;
    std::cout << json_line(failure_result(error, mode.value_or(SandboxMode::read_only)))
              << std::flush;
    return kExitNotRun;
  }
}

}  // namespace stockade
