// SPDX-License-Identifier: MIT
#include "bash-sandbox/call.hpp"

#include <signal.h>

#include "framework/error.hpp"
#include "sandbox/errors.hpp"

namespace stockade {

namespace {

SignatureScanner make_scanner(const std::optional<ConfinedArgv>& confined) {
  if (!confined) return SignatureScanner({}, {});
  return SignatureScanner(confined->denial_signatures, confined->runner_failure_rules);
}

}  // namespace

BashCall::BashCall(Loop& loop, std::shared_ptr<SpillDirectory> spills, CallPlan plan,
                   AbortSignal abort, OutputSink* sink)
    : spills_(std::move(spills)),
      plan_(std::move(plan)),
      sink_(sink),
      done_(loop),
      out_(loop, *spills_, "stdout", plan_.spec.stdout_max_bytes,
           plan_.spec.spill ? plan_.limits.spill_bytes : 0, [this] { flow(Stream::output); }),
      err_(loop, *spills_, "stderr", plan_.spec.stderr_max_bytes,
           plan_.spec.spill ? plan_.limits.spill_bytes : 0, [this] { flow(Stream::error); }),
      scanner_(make_scanner(plan_.confined)),
      timeout_(loop),
      grace_(loop),
      drain_(loop) {
  if (abort.aborted()) {
    BashResult result = result_so_far();
    result.outcome = BashOutcome::aborted;
    result.aborted = true;
    result.sandbox.ran = false;
    settle(std::move(result));
    return;
  }
  SpawnRequest request;
  // `--`: a command that begins with a dash is a command and no option of bash.
  request.argv = plan_.confined ? plan_.confined->argv
                                : std::vector<std::string>{"bash", "-c", "--", plan_.spec.command};
  request.environment = plan_.environment;
  request.working_directory = plan_.spec.workdir;
  request.input = plan_.spec.input;
  request.status_channel = plan_.confined && plan_.confined->status_channel;
  request.block_term = plan_.confined && plan_.confined->block_term;
  auto spawned = Process::spawn(loop, request, *this);
  if (auto* error = std::get_if<SpawnError>(&spawned)) {
    spawn_failed(*error);
    return;
  }

  process_ = std::move(std::get<std::unique_ptr<Process>>(spawned));
  open_streams_ = request.status_channel ? 3 : 2;
  timeout_.start(plan_.spec.timeout, [this] { end_tree(Cause::timed_out); });
  abort_ = abort.on_abort([this] { end_tree(Cause::aborted); });
  if (sink_) sink_->on_resume([this](Stream stream) { flow(stream); });
}

BashCall::~BashCall() {
  if (sink_) sink_->on_resume(nullptr);
}

BashResult BashCall::result_so_far() const {
  BashResult result;
  result.timeout = plan_.spec.timeout;
  result.duration = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - started_);
  result.out = out_.captured();
  result.err = err_.captured();
  result.sandbox.mode = plan_.spec.policy.mode;
  if (plan_.confined) {
    result.sandbox.backend = plan_.confined->backend;
    result.sandbox.enforcement = plan_.confined->enforcement;
  }
  return result;
}

void BashCall::settle(BashResult result) {
  finished_ = true;
  if (status_ == BashProcessStatus::running)
    status_ =
        result.signal || result.aborted ? BashProcessStatus::killed : BashProcessStatus::completed;
  done_.settle(std::move(result));
}

void BashCall::spawn_failed(const SpawnError& error) {
  BashResult result = result_so_far();
  result.sandbox.ran = false;
  spawn_failure_ = error.message();
  status_ = BashProcessStatus::killed;
  // The working directory was opened before, so an ENOENT or EACCES here is about the runner (or
  // the interpreter of a runner that is a script) and nothing else.
  bool runner = plan_.confined && error.step == SpawnStep::program &&
                (error.error == ENOENT || error.error == EACCES);
  if (runner) {
    result.outcome = BashOutcome::runner_failed;
    result.sandbox.runner_failed = true;
    result.error = CallError{
        std::string(kSandboxUnavailable),
        sandbox_unavailable_message(*to_confined(plan_.spec.policy.mode), error.message())};
  } else {
    result.outcome = BashOutcome::failed;
    const char* code = error.step == SpawnStep::working_directory ? "WORKDIR_UNUSABLE"
                       : error.step == SpawnStep::resources       ? "SPAWN_RESOURCES"
                                                                  : "SPAWN_FAILED";
    result.error = CallError{code, error.message() + "; the command was not run"};
  }
  settle(std::move(result));
}

void BashCall::on_data(Stream stream, std::span<const char> bytes) {
  std::string_view view(bytes.data(), bytes.size());
  if (stream == Stream::status) {
    status_bytes_.append(
        view.substr(0, kMaxStatusBytes - std::min(status_bytes_.size(), kMaxStatusBytes)));
    return;
  }
  collector(stream).push(view);
  if (stream == Stream::error) scanner_.feed(view);
  if (sink_) sink_->on_output(stream, bytes);
  if (process_ && (collector(stream).saturated() || (sink_ && sink_->full(stream))))
    process_->pause(stream);
}

// Reads on, where neither the disk nor the sink holds back.
void BashCall::flow(Stream stream) {
  if (finished_) return;
  if (process_ && process_->paused(stream) && !collector(stream).saturated() &&
      !(sink_ && sink_->full(stream))) {
    process_->resume(stream);
    if (exit_ && !drain_.running()) drain_.start(plan_.limits.drain, [this] { end_drain(); });
  }
  advance();
}

void BashCall::on_end(Stream) {
  --open_streams_;
  advance();
}

void BashCall::on_exit(ExitStatus status) {
  exit_ = status;
  timeout_.stop();
  grace_.stop();
  // A background child may hold the streams for good; it is given the drain limit, from now on,
  // however much it writes.
  drain_.start(plan_.limits.drain, [this] { end_drain(); });
  advance();
}

// A stream that waits for its reader is no child's fault, and what it still holds is not dropped:
// it is given the limit anew when it is read on.
void BashCall::end_drain() {
  process_->signal_group(SIGKILL);
  for (Stream stream : {Stream::output, Stream::error, Stream::status})
    if (!process_->paused(stream)) process_->close_stream(stream);
}

bool BashCall::kill() {
  if (finished_ || exit_ || status_ == BashProcessStatus::killed) return false;
  status_ = BashProcessStatus::killed;
  end_tree(Cause::killed);
  return true;
}

void BashCall::end_tree(Cause cause) {
  if (!process_ || finished_) return;
  if (exit_) {  // its verdict stands; what is left of its streams is given up
    if (cause == Cause::aborted) process_->close_streams();
    return;
  }
  if (cause_ == Cause::none) cause_ = cause;  // the first cause stands
  timeout_.stop();
  if (grace_.running()) return;
  process_->signal_group(SIGTERM);
  grace_.start(plan_.limits.grace, [this] { process_->signal_group(SIGKILL); });
}

void BashCall::advance() {
  if (finished_ || !exit_ || open_streams_ > 0 || !out_.flushed() || !err_.flushed()) return;
  drain_.stop();
  // What the command left in the background ends with it.
  process_->signal_group(SIGKILL);
  process_->reap();
  scanner_.finish();

  Ending ending{exit_->code, exit_->signal, cause_ == Cause::timed_out, cause_ == Cause::aborted,
                cause_ == Cause::killed};
  Evidence evidence;
  evidence.confined = plan_.confined.has_value();
  if (plan_.confined && plan_.confined->status_channel)
    evidence.status = read_status(status_bytes_);
  evidence.fatal_line = scanner_.fatal_line(exit_->code);
  evidence.denial_line = scanner_.denial_line();
  Verdict verdict = classify(ending, evidence);

  BashResult result = result_so_far();
  result.outcome = verdict.outcome;
  result.exit_code = exit_->code;
  result.signal = exit_->signal;
  result.timed_out = ending.timed_out;
  result.aborted = ending.aborted;
  result.sandbox.denied = verdict.denied;
  result.sandbox.runner_failed = verdict.runner_failed;
  result.sandbox.ran = verdict.ran;
  result.sandbox.evidence = verdict.evidence;
  if (verdict.runner_failed)
    result.error = CallError{
        std::string(kSandboxUnavailable),
        sandbox_unavailable_message(*to_confined(plan_.spec.policy.mode), verdict.failure)};
  settle(std::move(result));
}

BashRead BashCall::read() {
  BashRead read;
  auto out = out_.tail().read_from(out_read_);
  auto err = err_.tail().read_from(err_read_);
  out_read_ = out.next;
  err_read_ = err.next;
  read.output = std::move(out.bytes);
  std::string errors = std::move(err.bytes);
  if (!spawn_failure_.empty()) errors += "spawn failed: " + std::exchange(spawn_failure_, {});
  if (!errors.empty()) {
    if (!read.output.empty() && read.output.back() != '\n') read.output += '\n';
    read.output += "[stderr]\n" + errors;
  }
  read.lossy = out.lossy || err.lossy;
  read.stdout_spill_path = out_.captured().spill_path;
  read.stderr_spill_path = err_.captured().spill_path;
  return read;
}

}  // namespace stockade
