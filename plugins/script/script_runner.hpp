// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "plugins/script/script.hpp"
#include "plugins/tool.hpp"

namespace stockade {

class LineScriptRunner final : public ScriptRunner {
 public:
  // `find_tool` returns null for a tool that is not there.
  explicit LineScriptRunner(std::function<std::shared_ptr<Tool>(std::string_view name)> find_tool)
      : find_tool_(std::move(find_tool)) {}
  Task<ScriptSummary> run(LineSource& source, ResultSink& sink, std::shared_ptr<SessionLog> session,
                          AbortSignal abort) override;

 private:
  std::function<std::shared_ptr<Tool>(std::string_view)> find_tool_;
};

}  // namespace stockade
