// SPDX-License-Identifier: MIT
// The tool `bash` over ctx.shell: checks arguments, runs, renders.
#pragma once

#include <memory>

#include "bash-sandbox/shell.hpp"
#include "plugins/tool.hpp"

namespace stockade {

// What a model reads: stdout, then `[stderr]` and stderr, or `(no output)`; then a line for each of
// truncation, timeout, denial, and the exit code or signal where it is not 0.
std::string render_result(const BashResult& result);

class BashTool final : public Tool {
 public:
  static constexpr std::string_view service = "tool:bash/1";
  explicit BashTool(std::shared_ptr<Shell> shell) : shell_(std::move(shell)) {}
  Task<ToolResult> call(nlohmann::json arguments, AbortSignal abort) override;

 private:
  std::shared_ptr<Shell> shell_;
};

}  // namespace stockade
