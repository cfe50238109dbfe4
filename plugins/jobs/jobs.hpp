// SPDX-License-Identifier: MIT
// `ctx.jobs`: work that goes on after the call that began it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/abort.hpp"
#include "framework/completion.hpp"
#include "framework/task.hpp"

namespace stockade {

enum class JobStatus { running, stopping, completed, killed, failed };

struct JobOutcome {
  JobStatus status = JobStatus::completed;
  std::string detail;  // `exit code: 0`, `signal: SIGTERM`
};

// What runs, as the jobs service sees it. Dropping it ends what runs.
class JobWork {
 public:
  virtual ~JobWork() = default;
  virtual std::string read() = 0;  // what came since the last read, as text
  virtual void cancel(const std::string& reason) = 0;
  virtual Completion<JobOutcome> done() const = 0;
};

struct JobSnapshot {
  std::string id;  // `bash-1`
  std::string kind;
  std::string label;
  JobStatus status = JobStatus::running;
  std::string detail;
};

// `[status: completed, exit code: 0]`
std::string job_status_marker(const JobSnapshot& job);

class Jobs {
 public:
  static constexpr std::string_view service = "jobs/1";
  virtual ~Jobs() = default;

  // An owner is a session's id; "" owns what belongs to nobody and what everybody may see. Throws
  // Error `JOB_LIMIT` before `starter` runs, and what `starter` throws; then no id is used up.
  virtual JobSnapshot start(const std::string& owner, const std::string& kind,
                            const std::string& label,
                            const std::function<std::shared_ptr<JobWork>()>& starter) = 0;

  // These throw Error `JOB_UNKNOWN` or, for another owner's job, `JOB_FOREIGN`.
  struct Read {
    std::string output;
    JobSnapshot job;
  };
  virtual Read read(const std::string& owner, const std::string& id) = 0;
  // The state after the kill; `requested` is false for one that had already ended.
  struct Kill {
    bool requested = false;
    JobSnapshot job;
  };
  virtual Kill kill(const std::string& owner, const std::string& id, const std::string& reason) = 0;
  // Until it has ended, or for so long. Throws Error `WAIT_ABORTED`; the job goes on.
  virtual Task<JobSnapshot> wait(std::string owner, std::string id, std::chrono::milliseconds most,
                                 AbortSignal abort) = 0;

  // In the order in which they were started.
  virtual std::vector<JobSnapshot> list(const std::string& owner) const = 0;
};

}  // namespace stockade
