// SPDX-License-Identifier: MIT
#include "bash-sandbox/classify.hpp"

namespace stockade {

namespace {

std::string how_it_ended(const Ending& ending) {
  if (ending.signal) return "was ended by " + signal_name(*ending.signal);
  if (ending.exit_code) return "exited with " + std::to_string(*ending.exit_code);
  return "ended";
}

}  // namespace

Verdict classify(const Ending& ending, const Evidence& evidence) {
  Verdict verdict{};
  auto runner_failed = [&](std::string detail) {
    verdict.outcome = BashOutcome::runner_failed;
    verdict.runner_failed = true;
    verdict.ran = false;
    verdict.failure = std::move(detail);
    return verdict;
  };

  if (!evidence.confined) {
    verdict.ran = evidence.supervised_start.value_or(true);
  } else if (evidence.supervised_start == false) {
    verdict.ran = false;
  } else if (evidence.status) {
    if (!evidence.status->failure.empty()) return runner_failed(evidence.status->failure);
    verdict.ran = evidence.status->command_ran();
  }

  if (ending.timed_out || ending.aborted) {
    verdict.outcome = ending.timed_out ? BashOutcome::timed_out : BashOutcome::aborted;
    return verdict;
  }

  bool nonzero_exit = ending.exit_code && *ending.exit_code != 0;
  if (!evidence.confined) {  // no runner, no sandbox: nothing that could be said of either
    verdict.outcome = ending.exit_code == 0 ? BashOutcome::ok : BashOutcome::failed;
    return verdict;
  }
  if (evidence.status && !evidence.status->ready && ending.killed) {
    verdict.outcome = BashOutcome::failed;  // before it had begun, which is nobody's failure
    return verdict;
  }
  if (evidence.status && !evidence.status->ready) {
    verdict.evidence = evidence.fatal_line;
    return runner_failed(evidence.fatal_line ? *evidence.fatal_line
                                             : "the runner " + how_it_ended(ending) +
                                                   " before it was ready to start the command");
  }
  if (!evidence.status && evidence.fatal_line) {
    verdict.evidence = evidence.fatal_line;
    runner_failed(*evidence.fatal_line);
    verdict.ran = std::nullopt;  // inferred from text, which the command could have printed itself
    return verdict;
  }

  if (nonzero_exit && evidence.denial_line) {
    verdict.outcome = BashOutcome::denied;
    verdict.denied = true;
    verdict.evidence = evidence.denial_line;
    return verdict;
  }
  verdict.outcome = ending.exit_code == 0 ? BashOutcome::ok : BashOutcome::failed;
  return verdict;
}

}  // namespace stockade
