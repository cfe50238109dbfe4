// SPDX-License-Identifier: MIT
// The tool `bash` over ctx.shell: checks arguments, asks for what is wider than the session's mode,
// runs, renders.
#pragma once

#include <functional>
#include <memory>

#include "bash-sandbox/shell.hpp"
#include "framework/log.hpp"
#include "framework/loop.hpp"
#include "plugins/approval/approval.hpp"
#include "plugins/jobs/jobs.hpp"
#include "plugins/tool-bash/arguments.hpp"
#include "plugins/tool.hpp"

namespace stockade {

// What a model reads: stdout, then `[stderr]` and stderr, or `(no output)`; then a line for each of
// truncation, timeout, denial (and, where it can be asked for, the way to a wider mode), and the
// exit code or signal where it is not 0.
std::string render_result(const BashResult& result, bool offer_escalation = false);

// What the tool works with. The functions find the service of the moment, null where there is none.
struct BashToolServices {
  std::shared_ptr<Shell> shell;
  std::shared_ptr<const SandboxPolicyResolver> policies;
  std::function<std::shared_ptr<Approval>()> approval;
  std::function<std::shared_ptr<Jobs>()> jobs;
  std::shared_ptr<const void> code{};  // keeps this library mapped while a job lives
};

class BashTool final : public Tool {
 public:
  static constexpr std::string_view service = "tool:bash/1";
  // `abilities.escalation` holds only over a shell that confines by default.
  BashTool(Loop& loop, BashToolServices services, BashAbilities abilities, Log log);
  ToolDescription describe() const override;
  Task<ToolResult> call(ToolCall call) override;

 private:
  Task<BashSpec> prepare(const ToolCall& call, const BashArguments& arguments, SandboxMode& mode);
  ToolResult start_job(const ToolCall& call, const BashArguments& arguments, BashSpec spec);
  void record_end(const ToolCall& call, const BashResult& result) const;

  Loop& loop_;
  BashToolServices services_;
  BashAbilities abilities_;
  Log log_;
};

}  // namespace stockade
