// SPDX-License-Identifier: MIT
#include "bash-sandbox/call.hpp"

#include <signal.h>

#include <cerrno>

#include "bash-sandbox/command_line.hpp"
#include "bash-sandbox/utf8_text.hpp"
#include "framework/error.hpp"
#include "framework/library.hpp"
#include "sandbox/errors.hpp"

namespace stockade {

namespace {

using std::chrono::milliseconds;

// Beyond what is configured, for what should not happen: a disk that hangs, a process that KILL
// does not end (because the kernel holds it, or because it is another user's by now).
constexpr milliseconds kDiskLimit{2000};
constexpr milliseconds kKillLimit{Process::kLeashLimit + 6000};  // the supervisor's sweep included

// Of standard output; a command that prints more than this before a denial there is `failed`.
constexpr std::size_t kMostScanned = 8U << 20;

SignatureScanner make_scanner(const std::optional<ConfinedArgv>& confined, Stream stream) {
  if (!confined) return SignatureScanner({}, {});
  if (stream == Stream::output)
    return SignatureScanner(confined->denial_signatures, {}, SignatureForm::diagnostic);
  return SignatureScanner(confined->denial_signatures, confined->runner_failure_rules);
}

const char* error_code(const SpawnError& error) {
  if (error.step == SpawnStep::working_directory) return "WORKDIR_UNUSABLE";
  if (error.step == SpawnStep::program) return "SPAWN_FAILED";
  switch (error.error) {
    case EAGAIN:
      return "PROCESS_LIMIT";
    case ENOMEM:
      return "OUT_OF_MEMORY";
    case EMFILE:
    case ENFILE:
      return "DESCRIPTOR_LIMIT";
    case E2BIG:
      return "COMMAND_LINE_TOO_LONG";
    default:
      return "SPAWN_RESOURCES";
  }
}

std::string writable_root(const SandboxExecutionPolicy& policy) {
  return policy.mode == SandboxMode::workspace_write ? policy.workspace_root : std::string();
}

}  // namespace

std::string supervisor_program() {
  return installation_directory() + "/stockade-supervise";
}

BashCall::BashCall(Loop& loop, std::shared_ptr<SpillDirectory> spills, CallPlan plan,
                   AbortSignal abort, OutputSink* sink)
    : spills_(std::move(spills)),
      plan_(std::move(plan)),
      sink_(sink),
      done_(loop),
      out_(loop, *spills_, "stdout", writable_root(plan_.spec.policy), plan_.spec.stdout_max_bytes,
           plan_.spec.spill ? plan_.limits.spill_bytes : 0, [this] { flow(Stream::output); }),
      err_(loop, *spills_, "stderr", writable_root(plan_.spec.policy), plan_.spec.stderr_max_bytes,
           plan_.spec.spill ? plan_.limits.spill_bytes : 0, [this] { flow(Stream::error); }),
      out_scanner_(make_scanner(plan_.confined, Stream::output)),
      err_scanner_(make_scanner(plan_.confined, Stream::error)),
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
  request.argv = plan_.confined ? plan_.confined->argv : bash_command_line(plan_.spec.command);
  request.environment = plan_.environment;
  request.working_directory = plan_.spec.workdir;
  request.input = plan_.spec.input;
  request.status_channel = true;
  request.block_term = plan_.confined && plan_.confined->block_term;
  supervised_ = !plan_.confined || !plan_.confined->status_channel;
  if (supervised_) {
    int error = 0;
    std::string program = find_program(request.argv.front(), error);
    if (error) {
      spawn_failed({SpawnStep::program, error, request.argv.front()});
      return;
    }
    request.argv.insert(
        request.argv.begin(),
        {supervisor_program(), std::to_string(plan_.limits.drain.count()), std::move(program)});
    request.block_term = true;
  }
  timeout_.start(plan_.spec.timeout, [this] { end(Cause::timed_out); });
  abort_ = abort.on_abort([this] { end(Cause::aborted); });
  if (sink_) sink_->on_resume([this](Stream stream) { flow(stream); });
  auto spawned = Process::spawn(loop, std::move(request), *this);
  if (auto* error = std::get_if<SpawnError>(&spawned)) {
    spawn_failed(*error);
    return;
  }
  process_ = std::move(std::get<std::unique_ptr<Process>>(spawned));
}

BashCall::~BashCall() {
  if (sink_) sink_->on_resume(nullptr);
}

BashResult BashCall::result_so_far() const {
  BashResult result;
  result.timeout = plan_.spec.timeout;
  result.queued = plan_.queued;
  result.duration = std::chrono::duration_cast<milliseconds>(Clock::now() - started_);
  result.out = out_.captured();
  result.err = err_.captured();
  result.sandbox.mode = plan_.spec.policy.mode;
  if (plan_.confined) {
    result.sandbox.backend = plan_.confined->backend;
    result.sandbox.enforcement = plan_.confined->enforcement;
  }
  return result;
}

// A handle may be kept for long after this: it keeps what read() needs and no more.
void BashCall::settle(BashResult result) {
  finished_ = true;
  if (status_ == BashProcessStatus::running)
    status_ =
        result.signal || result.aborted ? BashProcessStatus::killed : BashProcessStatus::completed;
  for (Timer* timer : {&timeout_, &grace_, &drain_}) timer->stop();
  abort_ = {};
  process_.reset();
  out_.shrink();
  err_.shrink();
  plan_.environment = {};
  plan_.spec.input.reset();
  plan_.token.reset();
  done_.settle(std::move(result));
}

void BashCall::spawn_failed(const SpawnError& error) {
  BashResult result = result_so_far();
  result.sandbox.ran = false;
  spawn_failure_ = error.message();
  status_ = BashProcessStatus::killed;
  // The working directory is a step of its own, so an ENOENT or EACCES here is about the runner (or
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
    result.error = CallError{error_code(error), error.message() + "; the command was not run"};
  }
  settle(std::move(result));
}

void BashCall::on_data(Stream stream, std::span<const char> bytes) {
  std::string_view view(bytes.data(), bytes.size());
  if (stream == Stream::status) {
    report_.feed(view);
    on_report();
    return;
  }
  collector(stream).push(view);
  if (stream == Stream::error) {
    err_scanner_.feed(view);
  } else if (out_scanned_ < kMostScanned) {
    out_scanner_.feed(view);
    out_scanned_ += view.size();
  }
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
    if (exit_ && !drain_.running()) start_drain(plan_.limits.drain);
  }
  advance();
}

// Of a call that is to be ended the exit is waited for: it alone says that the tree is gone.
void BashCall::on_report() {
  const RunnerStatus* report = report_.so_far();
  if (exit_ || cause_ != Cause::none || !report) return;
  if (!report->command_ran() || (!report->exit_code && !report->signal)) return;
  reported_ = true;
  exit_ = ExitStatus{report->exit_code, report->signal};
  exited_at_ = Clock::now();
  timeout_.stop();
  start_drain(plan_.limits.drain);
  // A runner may hold them longer than the command, and writes nothing there.
  for (Stream stream : {Stream::output, Stream::error})
    if (!finished_) process_->take_rest(stream);
  if (!finished_) advance();
}

void BashCall::on_end(Stream stream) {
  ended_[static_cast<int>(stream)] = true;
  advance();
}

void BashCall::on_exit(ExitStatus status) {
  if (std::exchange(reported_, false)) {
    advance();
    return;
  }
  exit_ = status;
  exited_at_ = Clock::now();
  survives_ = false;
  timeout_.stop();
  grace_.stop();
  // A background child may hold the streams for good; it is given the drain limit, from now on,
  // however much it writes.
  start_drain(plan_.limits.drain);
  advance();
}

// Nothing ran, whatever the cause for which it was to be ended meanwhile.
void BashCall::on_failed(SpawnError error) {
  spawn_failed(error);
}

void BashCall::start_drain(milliseconds limit) {
  drain_.start(limit, [this] { end_drain(); });
}

// A stream that waits for the sink is no child's fault, and what it still holds is not dropped: it
// is given the limit anew when it is read on. The disk is waited for, but not for ever.
void BashCall::end_drain() {
  process_->signal_group(SIGKILL);
  const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - exited_at_);
  const bool disk_may_wait = waited < kDiskLimit;
  if (closing_) {
    out_.abandon_spill();
    err_.abandon_spill();
    advance();
    return;
  }
  bool wait_on = false;
  for (Stream stream : {Stream::status, Stream::output, Stream::error}) {
    if (finished_) return;
    if (!process_->paused(stream)) {
      process_->close_stream(stream);
    } else if (collector(stream).saturated()) {
      if (disk_may_wait) {
        wait_on = true;
      } else {
        collector(stream).abandon_spill();
        flow(stream);
      }
    }
  }
  if (wait_on && !finished_ && !drain_.running()) start_drain(kDiskLimit - waited);
}

bool BashCall::kill() {
  if (finished_ || exit_ || status_ == BashProcessStatus::killed) return false;
  status_ = BashProcessStatus::killed;
  end(Cause::killed);
  return true;
}

void BashCall::end(Cause cause) {
  if (finished_) return;
  if (!process_) return;
  if (exit_) {  // its verdict stands; what is left of its streams is given up
    if (cause == Cause::aborted) process_->close_streams();
    return;
  }
  if (cause_ == Cause::none) cause_ = cause;  // the first cause stands
  timeout_.stop();
  if (grace_.running()) return;
  process_->signal_group(SIGTERM);
  grace_.start(plan_.limits.grace, [this] { kill_tree(); });
}

void BashCall::kill_tree() {
  grace_.start(kKillLimit, [this] { give_up(); });
  process_->end_tree();
}

void BashCall::give_up() {
  survives_ = true;
  exit_ = ExitStatus{};
  exited_at_ = Clock::now();
  start_drain(plan_.limits.drain);
  process_->close_streams();
}

// Once the streams have ended, the disk is given what is left of its limit.
void BashCall::advance() {
  const bool streams_ended = ended_[0] && ended_[1] && (ended_[2] || reported_);
  if (finished_ || !exit_ || !streams_ended) return;
  if (!closing_) {
    closing_ = true;
    out_.close();
    err_.close();
    start_drain(kDiskLimit);
  }
  if (out_.flushed() && err_.flushed()) conclude();
}

void BashCall::conclude() {
  if (!survives_ && !reported_) {
    // What the command left in the background ends with it.
    process_->signal_group(SIGKILL);
    process_->reap();
  }
  out_scanner_.finish();
  err_scanner_.finish();

  const RunnerStatus& report = report_.finish();
  // The word of the command's own parent, where a runner in between knows only 128+n.
  if (report.command_ran() && !survives_) {
    if (report.exit_code) exit_ = ExitStatus{report.exit_code, std::nullopt};
    if (report.signal) exit_ = ExitStatus{std::nullopt, report.signal};
  }
  Evidence evidence;
  evidence.confined = plan_.confined.has_value();
  if (supervised_) {
    if (report.error && cause_ == Cause::none) {
      const auto& argv0 = plan_.confined ? plan_.confined->argv.front() : std::string("bash");
      spawn_failed({SpawnStep::program, *report.error, argv0});
      return;
    }
    evidence.supervised_start = report.command_ran();
  } else {
    evidence.status = report;
  }
  evidence.fatal_line = err_scanner_.fatal_line(exit_->code);
  evidence.denial_line = err_scanner_.denial_line();
  // Only of a command that sent its errors there, as `2>&1` does.
  if (err_.tail().total() == 0) evidence.denial_line = out_scanner_.denial_line();
  const Ending ending{exit_->code, exit_->signal, cause_ == Cause::timed_out,
                      cause_ == Cause::aborted, cause_ == Cause::killed};
  const Verdict verdict = classify(ending, evidence);

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
  else if (evidence.supervised_start == false && cause_ == Cause::none)
    result.error = CallError{"SPAWN_FAILED",
                             "the supervisor ended before it had started the command; the command "
                             "was not run"};
  if (survives_)
    result.notes.push_back("process " + std::to_string(process_->pid()) +
                           " was not ended by SIGKILL and may still run");
  settle(std::move(result));
}

BashRead BashCall::read() {
  BashRead read;
  auto take = [](const Collector& from, std::uint64_t& offset, bool whole, bool& lossy) {
    auto slice = from.tail().read_from(offset);
    std::string_view bytes = slice.bytes;
    if (slice.lossy) bytes = from_character_start(bytes);
    std::string_view taken = whole ? bytes : to_character_end(bytes);
    offset = slice.next - (bytes.size() - taken.size());
    lossy |= slice.lossy;
    return std::string(taken);
  };
  std::string out = take(out_, out_read_, finished_, read.lossy);
  std::string err = take(err_, err_read_, finished_, read.lossy);
  read.output = std::move(out);
  std::string errors = std::move(err);
  if (!spawn_failure_.empty()) errors += "spawn failed: " + std::exchange(spawn_failure_, {});
  if (!errors.empty()) {
    if (!read.output.empty() && read.output.back() != '\n') read.output += '\n';
    read.output += "[stderr]\n" + errors;
  }
  read.stdout_spill_path = out_.captured().spill_path;
  read.stderr_spill_path = err_.captured().spill_path;
  return read;
}

}  // namespace stockade
