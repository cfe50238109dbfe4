// SPDX-License-Identifier: MIT
// `ctx.approval`: asks whoever may say so whether one call may have a wider mode. It fails closed:
// without an answer nothing is granted.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "framework/abort.hpp"
#include "framework/task.hpp"
#include "plugins/session.hpp"
#include "sandbox/escalation.hpp"

namespace stockade {

// Somebody who answers: a policy file, a terminal, the client that made the call.
class Answerer {
 public:
  virtual ~Answerer() = default;
  // Absent: this one has no say in it, and the next is asked. May throw, which counts as no answer
  // at all. The task is dropped when the call is aborted.
  virtual Task<std::optional<EscalationOutcome>> answer(Escalation escalation,
                                                        AbortSignal abort) = 0;
};

struct ApprovalRequest {
  Escalation escalation;
  std::shared_ptr<SessionLog> session;  // gets one `approval/asked` and one `approval/decided`
  std::shared_ptr<Answerer> asker;      // of the call itself; may be null
};

class Approval {
 public:
  static constexpr std::string_view service = "approval/1";
  virtual ~Approval() = default;

  // The first answer counts: of those added before the asker, of the asker, of those added after
  // it. An error of one is logged and ends the question as `unavailable`, so that a rule that could
  // not be read is not passed over. Throws what the session's log throws; then nothing is granted.
  virtual Task<EscalationOutcome> request(ApprovalRequest request, AbortSignal abort) = 0;

  // Whether anybody could answer at all, an asker of the call aside.
  virtual bool has_answerers() const = 0;

  enum class Place { before_asker, after_asker };
  // Until remove(); the answerer is kept alive by a question that it was asked.
  virtual void add(std::shared_ptr<Answerer> answerer, Place place) = 0;
  virtual void remove(const std::shared_ptr<Answerer>& answerer) = 0;
};

}  // namespace stockade
