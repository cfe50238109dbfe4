// SPDX-License-Identifier: MIT
#include "sandbox/escalation.hpp"

#include <algorithm>

#include "framework/error.hpp"
#include "framework/fields.hpp"

namespace stockade {

std::vector<SandboxMode> wider_modes(SandboxMode mode) {
  switch (mode) {
    case SandboxMode::read_only:
      return {SandboxMode::workspace_write, SandboxMode::danger_full_access};
    case SandboxMode::workspace_write:
      return {SandboxMode::danger_full_access};
    case SandboxMode::danger_full_access:
      break;
  }
  return {};
}

std::vector<SandboxMode> escalation_targets() {
  return wider_modes(SandboxMode::read_only);
}

std::string escalation_hint(std::string_view subject) {
  return "[sandbox: escalation available \xE2\x80\x94 retry this exact " + std::string(subject) +
         " once with sandbox_permissions (the narrowest wider mode that suffices) + justification; "
         "the approval prompt asks the user]";
}

namespace {

// Spaces of any script: a justification of U+00A0 or U+3000 alone says nothing.
bool blank(std::string_view text) {
  static const std::vector<std::string_view> spaces{
      " ",      "\t",     "\n",     "\r",     "\v",     "\f",     "\xC2\xA0", "\u1680", "\u2000",
      "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007",   "\u2008", "\u2009",
      "\u200A", "\u2028", "\u2029", "\u202F", "\u205F", "\u3000", "\uFEFF"};
  while (!text.empty()) {
    auto space = std::find_if(spaces.begin(), spaces.end(),
                              [&](std::string_view each) { return text.starts_with(each); });
    if (space == spaces.end()) return false;
    text.remove_prefix(space->size());
  }
  return true;
}

Error unavailable(SandboxMode to, const std::string& why) {
  return Error("APPROVAL_UNAVAILABLE",
               "sandbox escalation to \"" + to_string(to) + "\" requires approval, but " + why);
}

}  // namespace

std::optional<SandboxMode> check_escalation(const EscalationArguments& arguments) {
  auto refuse = [](const std::string& what, const char* name) {
    throw Error("ARGUMENTS_INVALID", what, name);
  };
  const auto& permissions = arguments.sandbox_permissions;
  if (permissions && !arguments.justification)
    refuse("invalid escalation: sandbox_permissions requires a justification", "justification");
  if (!permissions && arguments.justification)
    refuse("invalid escalation: justification is only valid together with sandbox_permissions",
           "justification");
  if (!permissions) return std::nullopt;
  if (blank(*arguments.justification))
    refuse("invalid justification: expected a non-empty sentence", "justification");
  std::vector<std::string> names;
  for (SandboxMode target : escalation_targets()) {
    names.push_back(to_string(target));
    if (*permissions == names.back()) return target;
  }
  refuse("invalid sandbox_permissions: \"" + *permissions + "\" is no wider mode" +
             suggestion(*permissions, names),
         "sandbox_permissions");
  return std::nullopt;
}

Task<SandboxMode> approve_escalation(Escalation escalation, std::string justification,
                                     std::string subject, bool has_agent,
                                     EscalationApprover approver) {
  const SandboxMode to = escalation.to;
  const std::string mode = to_string(to);
  auto wider = wider_modes(escalation.from);
  if (std::find(wider.begin(), wider.end(), to) == wider.end())
    throw Error("ESCALATION_INVALID",
                "sandbox escalation to \"" + mode +
                    "\" is not strictly wider than the mode of this call, \"" +
                    to_string(escalation.from) + "\"",
                mode);
  if (!approver) throw unavailable(to, "no approval service is composed");
  if (!has_agent) throw unavailable(to, "the call has no agent to route it through");

  escalation.reason = "escalate sandbox to " + mode + ": " + justification;
  auto asking = approver(std::move(escalation));
  EscalationOutcome outcome = co_await asking;
  switch (outcome) {
    case EscalationOutcome::approved:
      co_return to;
    case EscalationOutcome::rejected:
      throw Error("APPROVAL_REJECTED",
                  "the user rejected escalating this " + subject + " to \"" + mode + "\"", mode);
    case EscalationOutcome::cancelled:
      throw Error("APPROVAL_CANCELLED", "approval for escalating to \"" + mode + "\" was cancelled",
                  mode);
    case EscalationOutcome::unavailable:
      throw unavailable(to, "no approval channel is available");
  }
  throw Error("INTERNAL", "unreachable variant in EscalationOutcome: \"" +
                              std::to_string(static_cast<int>(outcome)) + "\"");
}

}  // namespace stockade
