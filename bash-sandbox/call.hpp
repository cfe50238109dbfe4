// SPDX-License-Identifier: MIT
// One call from spawn to verdict: a passive state machine over a Process. Exit, both streams and
// the status channel each settle once; the call is done when all have, or when the process has
// exited and the drain limit is over. A report of the command's end on the status channel counts as
// the exit: it comes when nothing of the command is left, and what the runner does after it (a
// namespace takes a while to go) is not waited for. Every wait in it has a limit.
//
// A runner that reports on the status channel owns the process tree of its call. Whatever else is
// started, a runner without a channel and the unconfined command, is started by
// `stockade-supervise`, which owns the tree in its place.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bash-sandbox/classify.hpp"
#include "bash-sandbox/collect.hpp"
#include "bash-sandbox/shell.hpp"
#include "bash-sandbox/signatures.hpp"
#include "bash-sandbox/spill.hpp"
#include "framework/abort.hpp"
#include "framework/loop.hpp"
#include "framework/process.hpp"
#include "sandbox/confined.hpp"
#include "sandbox/status.hpp"

namespace stockade {

struct CallLimits {
  std::chrono::milliseconds grace;  // between TERM and KILL
  std::chrono::milliseconds drain;  // after the exit, for streams that a child still holds
  std::uint64_t spill_bytes;        // for each stream
};

struct CallPlan {
  BashSpec spec;
  std::optional<ConfinedArgv> confined;  // absent: unconfined, by danger-full-access alone
  std::vector<std::string> environment;
  CallLimits limits;
  std::chrono::milliseconds queued{0};
  std::shared_ptr<const void> code{};   // the library that this call is code of
  std::shared_ptr<const void> token{};  // let go of when the call has ended
};

// The program of that name in this installation.
std::string supervisor_program();

class BashCall final : public BashProcess, private ProcessObserver {
 public:
  // Begins to start at once. Never throws: what cannot be started is a result.
  BashCall(Loop& loop, std::shared_ptr<SpillDirectory> spills, CallPlan plan, AbortSignal abort,
           OutputSink* sink);
  ~BashCall() override;

  BashProcessStatus status() const override { return status_; }
  BashRead read() override;
  bool kill() override;
  Completion<BashResult> done() const override { return done_; }

 private:
  enum class Cause { none, timed_out, aborted, killed };
  using Clock = std::chrono::steady_clock;
  void end_drain();

  void on_data(Stream stream, std::span<const char> bytes) override;
  void on_end(Stream stream) override;
  void on_exit(ExitStatus status) override;
  void on_failed(SpawnError error) override;
  void on_report();

  void spawn_failed(const SpawnError& error);
  void end(Cause cause);
  void kill_tree();
  void give_up();
  void flow(Stream stream);
  void start_drain(std::chrono::milliseconds limit);
  void advance();
  void conclude();
  void settle(BashResult result);
  BashResult result_so_far() const;
  Collector& collector(Stream stream) { return stream == Stream::output ? out_ : err_; }

  std::shared_ptr<SpillDirectory> spills_;
  CallPlan plan_;
  OutputSink* sink_;
  Completion<BashResult> done_;
  Clock::time_point started_ = Clock::now();

  Collector out_;
  Collector err_;
  SignatureScanner out_scanner_;
  SignatureScanner err_scanner_;
  std::size_t out_scanned_ = 0;
  StatusReader report_;
  bool supervised_ = false;

  BashProcessStatus status_ = BashProcessStatus::running;
  Cause cause_ = Cause::none;
  std::optional<ExitStatus> exit_;
  bool reported_ = false;  // exit_ is the word of the command's parent, which may still be there
  Clock::time_point exited_at_{};
  bool ended_[3] = {};     // by Stream
  bool closing_ = false;   // the streams have ended, the disk has not
  bool survives_ = false;  // KILL did not end it
  bool finished_ = false;
  std::uint64_t out_read_ = 0;
  std::uint64_t err_read_ = 0;
  std::string spawn_failure_;  // for read()

  Timer timeout_;
  Timer grace_;
  Timer drain_;
  AbortSubscription abort_;
  std::unique_ptr<Process> process_;  // last: its end calls back into the rest
};

}  // namespace stockade
