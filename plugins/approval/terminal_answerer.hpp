// SPDX-License-Identifier: MIT
// Asks the person at the terminal.
#pragma once

#include <memory>
#include <optional>

#include "framework/completion.hpp"
#include "framework/fd.hpp"
#include "framework/loop.hpp"
#include "plugins/approval/approval.hpp"

namespace stockade {

class TerminalAnswerer final : public Answerer {
 public:
  // `terminal` is open for reading and writing. `code` keeps the library mapped that this is code
  // of.
  TerminalAnswerer(Loop& loop, Fd terminal, std::shared_ptr<const void> code);
  ~TerminalAnswerer() override;

  // One question at a time. Only `y` or `yes` approves; the end of input is a `cancelled`.
  Task<std::optional<EscalationOutcome>> answer(Escalation escalation, AbortSignal abort) override;

 private:
  Task<std::optional<std::string>> read_line();

  std::shared_ptr<const void> code_;
  Loop& loop_;
  Fd terminal_;
  std::optional<Completion<>> turn_;  // while a question is open: settles with it
  struct Poll;
  Poll* poll_ = nullptr;  // lives until libuv's close callback
};

// What is asked, with whatever could move the cursor shown escaped.
std::string terminal_question(const Escalation& escalation);

}  // namespace stockade
