// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <unistd.h>

#include "framework/plugin.hpp"
#include "plugins/approval/terminal_answerer.hpp"

namespace stockade {
namespace {

struct ApprovalTerminalConfig {};

Task<> apply(Context context, ApprovalTerminalConfig) {
  // Somebody reads what is said there, and the terminal is ours.
  if (isatty(2) != 1) co_return;
  Fd terminal(open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal) co_return;
  auto approval = context.get<Approval>();
  std::shared_ptr<Answerer> answerer =
      std::make_shared<TerminalAnswerer>(context.loop(), std::move(terminal), context.code());
  approval->add(answerer, Approval::Place::after_asker);
  context.effect("answerer", [approval, answerer] { approval->remove(answerer); });
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("approval-terminal", ({"approval/1"}), stockade::apply)
