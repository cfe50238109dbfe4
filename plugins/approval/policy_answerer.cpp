// SPDX-License-Identifier: MIT
#include "plugins/approval/policy_answerer.hpp"

#include "framework/error.hpp"
#include "sandbox/roots.hpp"

namespace stockade {

void check_approval_policy(const ApprovalPolicyConfig& config) {
  for (std::size_t i = 0; i < config.rules.size(); ++i) {
    const auto& rule = config.rules[i];
    std::string path = "$.rules[" + std::to_string(i) + "]";
    // Also what a rule without a mode would be.
    if (rule.mode == SandboxMode::read_only)
      throw Error("CONFIG_INVALID",
                  "approval-policy: " + path +
                      ".mode must be workspace-write or danger-full-access; nobody is asked for "
                      "read-only",
                  path + ".mode");
    if (!rule.workspace.empty() && rule.workspace.front() != '/')
      throw Error("CONFIG_INVALID",
                  "approval-policy: " + path + ".workspace must be an absolute path",
                  path + ".workspace");
  }
}

Task<std::optional<EscalationOutcome>> PolicyAnswerer::answer(Escalation escalation, AbortSignal) {
  for (const auto& rule : rules_) {
    if (rule.mode != escalation.to) continue;
    // Resolved at each question: a link may lead elsewhere by now.
    if (!rule.workspace.empty() &&
        !is_within(escalation.workspace_root, resolve_root(rule.workspace)))
      continue;
    co_return rule.answer == RuleAnswer::approve ? EscalationOutcome::approved
                                                 : EscalationOutcome::rejected;
  }
  co_return std::nullopt;
}

}  // namespace stockade
