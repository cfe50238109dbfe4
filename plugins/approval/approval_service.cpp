// SPDX-License-Identifier: MIT
#include "plugins/approval/approval_service.hpp"

#include <algorithm>

#include "framework/completion.hpp"
#include "framework/error.hpp"
#include "framework/fields.hpp"

namespace stockade {

namespace {

bool is_outcome(EscalationOutcome outcome) {
  return outcome == EscalationOutcome::approved || outcome == EscalationOutcome::rejected ||
         outcome == EscalationOutcome::cancelled || outcome == EscalationOutcome::unavailable;
}

Task<> ask_in_turn(std::vector<std::shared_ptr<Answerer>> answerers, Escalation escalation,
                   AbortSignal abort, Log log, Completion<EscalationOutcome> decided) {
  EscalationOutcome outcome = EscalationOutcome::unavailable;
  try {
    for (const auto& answerer : answerers) {
      auto asking = answerer->answer(escalation, abort);
      std::optional<EscalationOutcome> answer = co_await asking;
      if (!answer) continue;
      if (is_outcome(*answer))
        outcome = *answer;
      else
        log.error("an answerer gave no answer that is known; nothing is granted");
      break;
    }
  } catch (...) {
    log.error("an answerer failed; nothing is granted: " + describe(std::current_exception()));
  }
  decided.settle(outcome);
}

void record(const std::shared_ptr<SessionLog>& session, const char* type,
            nlohmann::ordered_json data) {
  if (session) session->append(type, std::move(data));
}

}  // namespace

void ApprovalService::add(std::shared_ptr<Answerer> answerer, Place place) {
  (place == Place::before_asker ? before_ : after_).push_back(std::move(answerer));
}

void ApprovalService::remove(const std::shared_ptr<Answerer>& answerer) {
  std::erase(before_, answerer);
  std::erase(after_, answerer);
}

Task<EscalationOutcome> ApprovalService::request(ApprovalRequest request, AbortSignal abort) {
  if (abort.aborted()) co_return EscalationOutcome::cancelled;
  const std::string id = "approval-" + std::to_string(++last_id_);
  nlohmann::ordered_json asked{{"id", id}, {"toolName", request.escalation.tool}};
  if (!request.escalation.call_id.empty()) asked["callId"] = request.escalation.call_id;
  if (!request.escalation.reason.empty()) asked["reason"] = request.escalation.reason;
  asked["from"] = to_string(request.escalation.from);
  asked["to"] = to_string(request.escalation.to);
  record(request.session, "approval/asked", std::move(asked));

  std::vector<std::shared_ptr<Answerer>> answerers = before_;
  if (request.asker) answerers.push_back(request.asker);
  answerers.insert(answerers.end(), after_.begin(), after_.end());

  Completion<EscalationOutcome> decided(loop_);
  AbortSubscription stop =
      abort.on_abort([decided] { decided.settle(EscalationOutcome::cancelled); });
  Log log = log_;
  TaskScope scope(loop_, [](std::exception_ptr) {});
  scope.start(ask_in_turn(std::move(answerers), request.escalation, abort, log, decided));
  EscalationOutcome outcome = co_await decided;
  record(request.session, "approval/decided", {{"id", id}, {"outcome", enum_name(outcome)}});
  co_return outcome;
}

}  // namespace stockade
