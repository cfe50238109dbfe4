// SPDX-License-Identifier: MIT
// A background command as a job.
#pragma once

#include <memory>

#include "bash-sandbox/shell.hpp"
#include "framework/loop.hpp"
#include "plugins/jobs/jobs.hpp"

namespace stockade {

// The text of one read: what came, and a line where some of it was dropped from memory.
std::string render_read(const BashRead& read);

// `exit code: 3`, `signal: SIGTERM`, `killed before exit`.
JobOutcome job_outcome(const BashResult& result, BashProcessStatus status);

// `shell` and `code`, the library that the job is code of, are held as long as the job. Throws what
// Shell::start throws.
std::shared_ptr<JobWork> make_bash_job(Loop& loop, std::shared_ptr<Shell> shell,
                                       std::shared_ptr<const void> code, BashSpec spec);

}  // namespace stockade
