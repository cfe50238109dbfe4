// SPDX-License-Identifier: MIT
#include "framework/plugin.hpp"
#include "plugins/approval/approval_service.hpp"

namespace stockade {
namespace {

struct ApprovalConfig {};

Task<> apply(Context context, ApprovalConfig) {
  context.provide<Approval>(std::make_shared<ApprovalService>(context.loop(), context.log()));
  co_return;
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("approval", ({}), stockade::apply)
