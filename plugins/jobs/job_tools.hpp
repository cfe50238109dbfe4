// SPDX-License-Identifier: MIT
// The tools `job_output`, `job_list` and `job_kill`: how a model deals with its background jobs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plugins/jobs/jobs.hpp"
#include "plugins/tool.hpp"

namespace stockade {

struct NamedTool {
  std::string name;
  std::shared_ptr<Tool> tool;
};

std::vector<NamedTool> make_job_tools(std::shared_ptr<Jobs> jobs);

}  // namespace stockade
