// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "framework/loop.hpp"
#include "plugins/script/script.hpp"
#include "plugins/tool.hpp"

namespace stockade {

class LineScriptRunner final : public ScriptRunner {
 public:
  // `find_tool` returns null for a tool that is not there.
  LineScriptRunner(Loop& loop,
                   std::function<std::shared_ptr<Tool>(std::string_view name)> find_tool)
      : loop_(loop), find_tool_(std::move(find_tool)) {}
  Task<ScriptSummary> run(LineSource& source, ResultSink& sink, ScriptOptions options,
                          AbortSignal abort) override;

 private:
  Loop& loop_;
  std::function<std::shared_ptr<Tool>(std::string_view)> find_tool_;
};

}  // namespace stockade
