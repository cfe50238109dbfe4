// SPDX-License-Identifier: MIT
#include "plugins/jobs/job_registry.hpp"

#include <algorithm>

#include "framework/error.hpp"
#include "framework/fields.hpp"

namespace stockade {

namespace {
bool active(JobStatus status) {
  return status == JobStatus::running || status == JobStatus::stopping;
}
}  // namespace

std::string job_status_marker(const JobSnapshot& job) {
  return "[status: " + enum_name(job.status) + (job.detail.empty() ? "" : ", " + job.detail) + "]";
}

JobRegistry::JobRegistry(Loop& loop, JobLimits limits, Log log)
    : loop_(loop),
      limits_(limits),
      log_(std::move(log)),
      settling_(loop, [](std::exception_ptr) {}) {}

JobRegistry::~JobRegistry() = default;

Task<> JobRegistry::settle(std::shared_ptr<Job> job) {
  Completion<JobOutcome> done = job->done;
  const JobOutcome& outcome = co_await done;
  job->facts.status = outcome.status;
  job->facts.detail = outcome.detail;
}

JobSnapshot JobRegistry::start(const std::string& owner, const std::string& kind,
                               const std::string& label,
                               const std::function<std::shared_ptr<JobWork>()>& starter) {
  auto running =
      static_cast<std::size_t>(std::count_if(jobs_.begin(), jobs_.end(), [&](const auto& job) {
        return job->owner == owner && active(job->facts.status);
      }));
  if (running >= limits_.active)
    throw Error(
        "JOB_LIMIT",
        "background job limit reached for this owner (limit: " + std::to_string(limits_.active) +
            "); use job_kill to stop an unneeded job, wait for it to finish, then retry",
        kind);
  std::shared_ptr<JobWork> work = starter();
  auto job = std::make_shared<Job>(Job{owner, {}, work, work->done()});
  job->facts = {kind + "-" + std::to_string(++last_[kind]), kind, label, JobStatus::running, {}};
  jobs_.push_back(job);
  settling_.start(settle(job));
  forget_old(owner);
  return job->facts;
}

void JobRegistry::forget_old(const std::string& owner) {
  auto ended =
      static_cast<std::size_t>(std::count_if(jobs_.begin(), jobs_.end(), [&](const auto& job) {
        return job->owner == owner && !active(job->facts.status);
      }));
  for (auto job = jobs_.begin(); job != jobs_.end() && ended > limits_.remembered;) {
    bool old = (*job)->owner == owner && !active((*job)->facts.status);
    if (old) --ended;
    job = old ? jobs_.erase(job) : std::next(job);
  }
}

JobRegistry::Job& JobRegistry::find(const std::string& owner, const std::string& id) {
  for (const auto& job : jobs_)
    if (job->facts.id == id) {
      if (!job->owner.empty() && job->owner != owner)
        throw Error("JOB_FOREIGN", "job " + id + " belongs to another session", id);
      return *job;
    }
  std::vector<std::string> known;
  for (const auto& job : list(owner)) known.push_back(job.id);
  throw Error("JOB_UNKNOWN", "unknown job " + id + suggestion(id, known), id);
}

Jobs::Read JobRegistry::read(const std::string& owner, const std::string& id) {
  Job& job = find(owner, id);
  return {job.work->read(), job.facts};
}

Jobs::Kill JobRegistry::kill(const std::string& owner, const std::string& id,
                             const std::string& reason) {
  Job& job = find(owner, id);
  if (!active(job.facts.status) || job.done.settled()) return {false, job.facts};
  job.work->cancel(reason);  // before the state changes: an error of it leaves all as it was
  job.facts.status = JobStatus::stopping;
  return {true, job.facts};
}

Task<JobSnapshot> JobRegistry::wait(std::string owner, std::string id,
                                    std::chrono::milliseconds most, AbortSignal abort) {
  if (most.count() <= 0)
    throw Error("ARGUMENTS_INVALID",
                "invalid wait timeout: expected a positive number of milliseconds, got " +
                    std::to_string(most.count()));
  std::shared_ptr<Job> job;
  Job& found = find(owner, id);
  for (const auto& each : jobs_)
    if (each.get() == &found) job = each;
  if (abort.aborted()) throw Error("WAIT_ABORTED", "wait aborted", id);

  Completion<> over(loop_);
  Timer limit(loop_);
  limit.start(most, [over] { over.settle(); });
  AbortSubscription stop = abort.on_abort([over] { over.settle(); });
  auto watch = [](std::shared_ptr<Job> watched, Completion<> ended) -> Task<> {
    Completion<JobOutcome> done = watched->done;
    co_await done;
    ended.settle();
  };
  TaskScope watching(loop_, [](std::exception_ptr) {});
  watching.start(watch(job, over));
  co_await over;
  if (abort.aborted()) throw Error("WAIT_ABORTED", "wait aborted", id);
  co_return job->facts;
}

std::vector<JobSnapshot> JobRegistry::list(const std::string& owner) const {
  std::vector<JobSnapshot> visible;
  for (const auto& job : jobs_)
    if (job->owner.empty() || job->owner == owner) visible.push_back(job->facts);
  return visible;
}

Task<> JobRegistry::dispose() {
  for (const auto& job : jobs_)
    if (!job->done.settled()) try {
        job->work->cancel("jobs service disposed");
      } catch (...) {
        log_.error("job " + job->facts.id +
                   " could not be ended: " + describe(std::current_exception()));
      }
  auto ending = jobs_;
  for (const auto& job : ending) {
    Completion<JobOutcome> done = job->done;
    co_await done;
  }
  jobs_.clear();
}

}  // namespace stockade
