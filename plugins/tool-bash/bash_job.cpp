// SPDX-License-Identifier: MIT
#include "plugins/tool-bash/bash_job.hpp"

#include "bash-sandbox/utf8_text.hpp"
#include "sandbox/errors.hpp"

namespace stockade {

std::string render_read(const BashRead& read) {
  std::string text = valid_utf8(read.output);
  if (read.lossy) {
    std::string where;
    for (const auto* path : {&read.stdout_spill_path, &read.stderr_spill_path})
      if (*path) where += (where.empty() ? "" : ", ") + valid_utf8(**path);
    if (!text.empty() && text.back() != '\n') text += '\n';
    text += "[some output was dropped from memory; full output: " +
            (where.empty() ? "(unavailable)" : where) + "]";
  }
  return text;
}

JobOutcome job_outcome(const BashResult& result, BashProcessStatus status) {
  if (status == BashProcessStatus::killed)
    return {JobStatus::killed,
            result.signal ? "signal: " + signal_name(*result.signal) : "killed before exit"};
  return {JobStatus::completed, "exit code: " + std::to_string(result.exit_code.value_or(0))};
}

namespace {

class BashJob final : public JobWork {
 public:
  BashJob(Loop& loop, std::shared_ptr<Shell> shell, std::shared_ptr<const void> code, BashSpec spec)
      : code_(std::move(code)),
        shell_(std::move(shell)),
        process_(shell_->start(std::move(spec), AbortSignal())),
        done_(loop),
        waiting_(loop, [](std::exception_ptr) {}) {
    waiting_.start(settle(process_, done_));
  }
  ~BashJob() override { process_->kill(); }

  std::string read() override {
    std::string text = render_read(process_->read());
    // Once it has ended, what the sandbox had to do with it.
    if (done_.settled() && !std::exchange(told_, true)) {
      const Completion<BashResult> ended = process_->done();
      const BashResult& result = ended.value();
      std::string line;
      if (result.sandbox.denied) line = denial_marker(result.sandbox.mode);
      if (result.error) line = "[error: " + valid_utf8(result.error->message) + "]";
      if (!line.empty()) {
        if (!text.empty() && text.back() != '\n') text += '\n';
        text += line;
      }
    }
    return text;
  }
  void cancel(const std::string&) override { process_->kill(); }
  Completion<JobOutcome> done() const override { return done_; }

 private:
  static Task<> settle(std::shared_ptr<BashProcess> process, Completion<JobOutcome> done) {
    Completion<BashResult> ended = process->done();
    const BashResult& result = co_await ended;
    done.settle(job_outcome(result, process->status()));
  }

  std::shared_ptr<const void> code_;
  std::shared_ptr<Shell> shell_;
  std::shared_ptr<BashProcess> process_;
  Completion<JobOutcome> done_;
  TaskScope waiting_;
  bool told_ = false;
};

}  // namespace

std::shared_ptr<JobWork> make_bash_job(Loop& loop, std::shared_ptr<Shell> shell,
                                       std::shared_ptr<const void> code, BashSpec spec) {
  return std::make_shared<BashJob>(loop, std::move(shell), std::move(code), std::move(spec));
}

}  // namespace stockade
