// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "framework/log.hpp"
#include "framework/loop.hpp"
#include "plugins/approval/approval.hpp"

namespace stockade {

class ApprovalService final : public Approval {
 public:
  ApprovalService(Loop& loop, Log log) : loop_(loop), log_(std::move(log)) {}
  Task<EscalationOutcome> request(ApprovalRequest request, AbortSignal abort) override;
  bool has_answerers() const override { return !before_.empty() || !after_.empty(); }
  void add(std::shared_ptr<Answerer> answerer, Place place) override;
  void remove(const std::shared_ptr<Answerer>& answerer) override;

 private:
  Loop& loop_;
  Log log_;
  std::vector<std::shared_ptr<Answerer>> before_;
  std::vector<std::shared_ptr<Answerer>> after_;
  std::uint64_t last_id_ = 0;
};

}  // namespace stockade
