// SPDX-License-Identifier: MIT
#include "framework/plugin.hpp"
#include "plugins/approval/policy_answerer.hpp"

namespace stockade {
namespace {

Task<> apply(Context context, ApprovalPolicyConfig config) {
  auto approval = context.get<Approval>();
  std::shared_ptr<Answerer> answerer = std::make_shared<PolicyAnswerer>(std::move(config.rules));
  approval->add(answerer, Approval::Place::before_asker);
  context.effect("answerer", [approval, answerer] { approval->remove(answerer); });
  co_return;
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("approval-policy", ({"approval/1"}), stockade::apply,
                stockade::check_approval_policy)
