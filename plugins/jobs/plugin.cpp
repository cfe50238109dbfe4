// SPDX-License-Identifier: MIT
#include "framework/plugin.hpp"
#include "framework/error.hpp"
#include "plugins/jobs/job_registry.hpp"
#include "plugins/jobs/job_tools.hpp"

namespace stockade {
namespace {

struct JobsConfig {
  std::int64_t max_active = 10;       // of one session
  std::int64_t max_remembered = 100;  // of one session, that have ended
};

void check(const JobsConfig& config) {
  if (config.max_active <= 0)
    throw Error("CONFIG_INVALID", "jobs: maxActive must be positive", "$.maxActive");
  if (config.max_remembered <= 0)
    throw Error("CONFIG_INVALID", "jobs: maxRemembered must be positive", "$.maxRemembered");
}

Task<> apply(Context context, JobsConfig config) {
  auto registry =
      std::make_shared<JobRegistry>(context.loop(),
                                    JobLimits{static_cast<std::size_t>(config.max_active),
                                              static_cast<std::size_t>(config.max_remembered)},
                                    context.log());
  context.effect("background jobs", Undo([registry] { return registry->dispose(); }));
  context.provide<Jobs>(registry);
  for (auto& each : make_job_tools(registry))
    context.provide_as<Tool>(tool_service(each.name), std::move(each.tool));
  co_return;
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("jobs", ({}), stockade::apply, stockade::check)
