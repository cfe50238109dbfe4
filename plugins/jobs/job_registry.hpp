// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <list>
#include <map>

#include "framework/log.hpp"
#include "framework/loop.hpp"
#include "plugins/jobs/jobs.hpp"

namespace stockade {

struct JobLimits {
  std::size_t active = 10;       // of one owner; one that is stopping still counts
  std::size_t remembered = 100;  // of one owner, that have ended; the oldest are forgotten
};

class JobRegistry final : public Jobs {
 public:
  JobRegistry(Loop& loop, JobLimits limits, Log log);
  // Ends what still runs; dispose() does so and waits.
  ~JobRegistry() override;

  JobSnapshot start(const std::string& owner, const std::string& kind, const std::string& label,
                    const std::function<std::shared_ptr<JobWork>()>& starter) override;
  Read read(const std::string& owner, const std::string& id) override;
  Kill kill(const std::string& owner, const std::string& id, const std::string& reason) override;
  Task<JobSnapshot> wait(std::string owner, std::string id, std::chrono::milliseconds most,
                         AbortSignal abort) override;
  std::vector<JobSnapshot> list(const std::string& owner) const override;

  Task<> dispose();

 private:
  struct Job {
    std::string owner;
    JobSnapshot facts;
    std::shared_ptr<JobWork> work;
    Completion<JobOutcome> done;
  };
  Job& find(const std::string& owner, const std::string& id);
  static Task<> settle(std::shared_ptr<Job> job);
  void forget_old(const std::string& owner);

  Loop& loop_;
  JobLimits limits_;
  Log log_;
  std::list<std::shared_ptr<Job>> jobs_;       // in the order in which they were started
  std::map<std::string, std::uint64_t> last_;  // number of each kind
  TaskScope settling_;
};

}  // namespace stockade
