// SPDX-License-Identifier: MIT
// Escalation: one call that may have a wider mode than its session, because somebody who may say so
// said so. A grant is for that one call; nothing of it is kept.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/task.hpp"
#include "sandbox/policy.hpp"

namespace stockade {

// The modes that are strictly wider than `mode`, the narrowest first; none above
// danger-full-access.
std::vector<SandboxMode> wider_modes(SandboxMode mode);

// What an escalation can ask for at all.
std::vector<SandboxMode> escalation_targets();

// `[sandbox: escalation available — …]`, after a denial; `subject` is what would be tried again.
std::string escalation_hint(std::string_view subject);

// What a model gave for an escalation, each absent where it gave nothing.
struct EscalationArguments {
  std::optional<std::string> sandbox_permissions;
  std::optional<std::string> justification;
};

// Absent when no escalation is asked for. Throws Error `ARGUMENTS_INVALID`: one comes without the
// other, the justification is blank, or the mode is no target.
std::optional<SandboxMode> check_escalation(const EscalationArguments& arguments);

// The question that an approver is asked.
struct Escalation {
  SandboxMode from = SandboxMode::read_only;
  SandboxMode to = SandboxMode::workspace_write;
  std::string workspace_root;
  std::string tool;
  std::string call_id;
  std::string reason;  // `escalate sandbox to workspace-write: …`
  std::string detail;  // what would run, for a person to read
};

// cancelled: the call or the prompt went away. unavailable: nobody could be asked.
enum class EscalationOutcome { approved, rejected, cancelled, unavailable };

using EscalationApprover = std::function<Task<EscalationOutcome>(Escalation)>;

// The mode that was granted, which is `escalation.to`. Throws Error, in this order:
// `ESCALATION_INVALID` when `to` is not strictly wider than `from`, and nobody is asked;
// `APPROVAL_UNAVAILABLE` without an approver, without an agent that the question could be routed
// through, or when nobody could be asked; `APPROVAL_REJECTED`; `APPROVAL_CANCELLED`.
// `justification` makes the reason; `subject` is the word for what runs: `command`.
Task<SandboxMode> approve_escalation(Escalation escalation, std::string justification,
                                     std::string subject, bool has_agent,
                                     EscalationApprover approver);

}  // namespace stockade
