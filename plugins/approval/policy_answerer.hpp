// SPDX-License-Identifier: MIT
// Answers by rules that the operator wrote: by mode and workspace, never by the text of a command,
// which says nothing about what it does.
#pragma once

#include <string>
#include <vector>

#include "plugins/approval/approval.hpp"

namespace stockade {

enum class RuleAnswer { approve, reject };

struct ApprovalRule {
  SandboxMode mode = SandboxMode::read_only;  // that is asked for; required
  std::string workspace;                      // of the call: this directory or one below; "": any
  RuleAnswer answer = RuleAnswer::reject;     // required
};

struct ApprovalPolicyConfig {
  std::vector<ApprovalRule>
      rules;  // the first that matches answers; else the next answerer is asked
};

// Throws Error `CONFIG_INVALID`.
void check_approval_policy(const ApprovalPolicyConfig& config);

class PolicyAnswerer final : public Answerer {
 public:
  explicit PolicyAnswerer(std::vector<ApprovalRule> rules) : rules_(std::move(rules)) {}
  Task<std::optional<EscalationOutcome>> answer(Escalation escalation, AbortSignal abort) override;

 private:
  std::vector<ApprovalRule> rules_;
};

}  // namespace stockade
