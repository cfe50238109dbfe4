// SPDX-License-Identifier: MIT
#include "sandbox/escalation.hpp"

#include "framework/error.hpp"
#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"

using namespace stockade;
using stockade::test::await_task;

namespace {

std::string refusal(const EscalationArguments& arguments) {
  try {
    check_escalation(arguments);
  } catch (const Error& error) {
    CHECK(error.code() == "ARGUMENTS_INVALID");
    return error.what();
  }
  return "";
}

Escalation escalation(SandboxMode from, SandboxMode to) {
  return {from, to, "/w", "bash", "call-7", {}, "make"};
}

struct Asked {
  Escalation escalation;
  int times = 0;
};

EscalationApprover answering(EscalationOutcome outcome, Asked& asked) {
  return [outcome, &asked](Escalation question) {
    return [](EscalationOutcome given, Asked* seen, Escalation put) -> Task<EscalationOutcome> {
      ++seen->times;
      seen->escalation = put;
      co_return given;
    }(outcome, &asked, std::move(question));
  };
}

// The code and text of what it throws.
std::pair<std::string, std::string> failure(Escalation asked_for, bool has_agent,
                                            EscalationApprover approver,
                                            std::string subject = "operation") {
  Loop loop;
  try {
    await_task(loop, approve_escalation(std::move(asked_for), "J", std::move(subject), has_agent,
                                        std::move(approver)));
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

}  // namespace

TEST_CASE("escalation: the ladder is strict") {
  using Modes = std::vector<SandboxMode>;
  CHECK(wider_modes(SandboxMode::read_only) ==
        Modes{SandboxMode::workspace_write, SandboxMode::danger_full_access});
  CHECK(wider_modes(SandboxMode::workspace_write) == Modes{SandboxMode::danger_full_access});
  CHECK(wider_modes(SandboxMode::danger_full_access).empty());
  CHECK(wider_modes(static_cast<SandboxMode>(9)).empty());
  CHECK(escalation_targets() ==
        Modes{SandboxMode::workspace_write, SandboxMode::danger_full_access});
}

TEST_CASE("escalation: its arguments come in a pair, checked in a fixed order") {
  CHECK(refusal({"workspace-write", std::nullopt}) ==
        "invalid escalation: sandbox_permissions requires a justification");
  CHECK(refusal({std::nullopt, "J"}) ==
        "invalid escalation: justification is only valid together with sandbox_permissions");
  CHECK(refusal({std::nullopt, " "}) ==
        "invalid escalation: justification is only valid together with sandbox_permissions");
  for (const char* blank : {"", " \t\n", "\u00A0\u3000", "\uFEFF\u2003"})
    CHECK(refusal({"workspace-write", blank}) ==
          "invalid justification: expected a non-empty sentence");
  CHECK_THAT(refusal({"workspace_write", "J"}), ContainsSubstring("\"workspace-write\""));
  CHECK_THAT(refusal({"read-only", "J"}), ContainsSubstring("no wider mode"));
  CHECK_FALSE(check_escalation({}));
  CHECK(check_escalation({"danger-full-access", "J"}) == SandboxMode::danger_full_access);
  CHECK(check_escalation({"workspace-write", "\u3000J"}) == SandboxMode::workspace_write);
}

TEST_CASE("escalation: an approval grants exactly what was asked for") {
  Loop loop;
  Asked asked;
  CHECK(await_task(loop, approve_escalation(
                             escalation(SandboxMode::read_only, SandboxMode::workspace_write), "J",
                             "command", true, answering(EscalationOutcome::approved, asked))) ==
        SandboxMode::workspace_write);
  CHECK(asked.times == 1);
  CHECK(asked.escalation.reason == "escalate sandbox to workspace-write: J");
  CHECK(asked.escalation.tool == "bash");
  CHECK(asked.escalation.call_id == "call-7");
}

TEST_CASE("escalation: whatever is no approval fails closed") {
  Asked asked;
  auto widening = escalation(SandboxMode::read_only, SandboxMode::workspace_write);
  using Failure = std::pair<std::string, std::string>;
  CHECK(failure(widening, false, nullptr) ==
        Failure{"APPROVAL_UNAVAILABLE",
                "sandbox escalation to \"workspace-write\" requires approval, but no approval "
                "service is composed"});
  CHECK(failure(widening, false, answering(EscalationOutcome::approved, asked)) ==
        Failure{"APPROVAL_UNAVAILABLE",
                "sandbox escalation to \"workspace-write\" requires approval, but the call has no "
                "agent to route it through"});
  CHECK(asked.times == 0);
  CHECK(failure(widening, true, answering(EscalationOutcome::rejected, asked)) ==
        Failure{"APPROVAL_REJECTED",
                "the user rejected escalating this operation to \"workspace-write\""});
  CHECK(failure(widening, true, answering(EscalationOutcome::cancelled, asked)) ==
        Failure{"APPROVAL_CANCELLED",
                "approval for escalating to \"workspace-write\" was "
                "cancelled"});
  CHECK(failure(widening, true, answering(EscalationOutcome::unavailable, asked)) ==
        Failure{"APPROVAL_UNAVAILABLE",
                "sandbox escalation to \"workspace-write\" requires approval, but no approval "
                "channel is available"});
  CHECK_THAT(failure(widening, true, answering(static_cast<EscalationOutcome>(7), asked)).second,
             ContainsSubstring("unreachable variant in EscalationOutcome: \"7\""));
}

TEST_CASE("escalation: what is not strictly wider asks nobody") {
  Asked asked;
  for (auto [from, to] : {std::pair{SandboxMode::workspace_write, SandboxMode::workspace_write},
                          {SandboxMode::danger_full_access, SandboxMode::workspace_write},
                          {SandboxMode::workspace_write, SandboxMode::read_only}}) {
    auto thrown =
        failure(escalation(from, to), true, answering(EscalationOutcome::approved, asked));
    CHECK(thrown.first == "ESCALATION_INVALID");
    CHECK_THAT(thrown.second, ContainsSubstring("not strictly wider"));
  }
  CHECK(asked.times == 0);
}

TEST_CASE("escalation: the hint after a denial") {
  CHECK(escalation_hint("command") ==
        "[sandbox: escalation available \u2014 retry this exact command once with "
        "sandbox_permissions (the narrowest wider mode that suffices) + justification; the "
        "approval prompt asks the user]");
}
