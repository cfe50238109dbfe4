// SPDX-License-Identifier: MIT
#include "bash-sandbox/classify.hpp"

#include <signal.h>

#include "tests/support/catch.hpp"

using namespace stockade;

namespace {

Ending exited(int code) {
  return {code, std::nullopt, false, false};
}
Ending killed(int signal) {
  return {std::nullopt, signal, false, false};
}

const RunnerStatus kReady{true, ""};

Evidence unconfined() {
  return {};
}
// Of a runner without a status channel.
Evidence blind(std::optional<std::string> fatal, std::optional<std::string> denial = {}) {
  return {true, std::nullopt, std::move(fatal), std::move(denial)};
}
Evidence reported(RunnerStatus status, std::optional<std::string> fatal = {},
                  std::optional<std::string> denial = {}) {
  return {true, std::move(status), std::move(fatal), std::move(denial)};
}

}  // namespace

TEST_CASE("classify: an unconfined command ran and is never denied") {
  auto ok = classify(exited(0), unconfined());
  CHECK(ok.outcome == BashOutcome::ok);
  CHECK(ok.ran == true);
  Evidence text = unconfined();
  text.denial_line = "x: Permission denied";
  auto failed = classify(exited(1), text);
  CHECK(failed.outcome == BashOutcome::failed);
  CHECK_FALSE(failed.denied);
  CHECK_FALSE(failed.evidence);
  CHECK(failed.ran == true);
}

TEST_CASE("classify: a nonzero exit with a denial line is a denial with that line") {
  for (const auto& evidence :
       {blind({}, "x: Permission denied"), reported(kReady, {}, "x: Permission denied")}) {
    auto verdict = classify(exited(1), evidence);
    CHECK(verdict.outcome == BashOutcome::denied);
    CHECK(verdict.denied);
    CHECK_FALSE(verdict.runner_failed);
    CHECK(verdict.evidence == "x: Permission denied");
  }
}

TEST_CASE("classify: a denial line with exit 0 is no denial") {
  auto verdict = classify(exited(0), blind({}, "x: Permission denied"));
  CHECK(verdict.outcome == BashOutcome::ok);
  CHECK_FALSE(verdict.denied);
  CHECK_FALSE(verdict.evidence);
}

TEST_CASE("classify: a denial line with a death by signal is no denial") {
  auto verdict = classify(killed(SIGTERM), blind({}, "x: Permission denied"));
  CHECK(verdict.outcome == BashOutcome::failed);
  CHECK_FALSE(verdict.denied);
}

TEST_CASE("classify: a nonzero exit without a line is a failure and nothing more") {
  for (int code : {1, 2, 125, 126, 127, 137}) {
    auto verdict = classify(exited(code), reported(kReady));
    CHECK(verdict.outcome == BashOutcome::failed);
    CHECK_FALSE(verdict.denied);
    CHECK_FALSE(verdict.runner_failed);
    CHECK(verdict.ran == true);
  }
}

TEST_CASE("classify: a runner failure outranks a denial") {
  std::string line = "fake-runner: cannot open rule path: Permission denied";
  auto verdict = classify(exited(125), blind(line, line));
  CHECK(verdict.outcome == BashOutcome::runner_failed);
  CHECK(verdict.runner_failed);
  CHECK_FALSE(verdict.denied);
  CHECK(verdict.evidence == line);
  CHECK(verdict.failure == line);
  CHECK_FALSE(verdict.ran);  // inferred from text, and so unknown
}

TEST_CASE("classify: without a channel and without a rule it is unknown whether it ran") {
  CHECK(classify(exited(1), blind({})).ran == std::nullopt);
  CHECK(classify(exited(0), blind({})).ran == std::nullopt);
}

TEST_CASE("classify: what a command prints does not outrank the channel") {
  auto verdict = classify(exited(1), reported(kReady, "bwrap: Can't mount proc"));
  CHECK(verdict.outcome == BashOutcome::failed);
  CHECK_FALSE(verdict.runner_failed);
  CHECK(verdict.ran == true);
}

TEST_CASE("classify: a runner that never was ready failed whatever its exit") {
  for (const auto& ending : {exited(0), exited(1), exited(125), killed(SIGSEGV)}) {
    auto verdict = classify(ending, reported({}));
    CHECK(verdict.outcome == BashOutcome::runner_failed);
    CHECK(verdict.ran == false);
    CHECK_FALSE(verdict.failure.empty());
  }
  CHECK(classify(exited(3), reported({})).failure ==
        "the runner exited with 3 before it was ready to start the command");
  CHECK(classify(killed(SIGSEGV), reported({})).failure ==
        "the runner was ended by SIGSEGV before it was ready to start the command");
}

TEST_CASE("classify: the line of a runner that never was ready is its detail") {
  auto verdict = classify(exited(1), reported({}, "bwrap: Can't mkdir /x: Read-only file system",
                                              "bwrap: Can't mkdir /x: Read-only file system"));
  CHECK(verdict.outcome == BashOutcome::runner_failed);
  CHECK(verdict.failure == "bwrap: Can't mkdir /x: Read-only file system");
  CHECK_FALSE(verdict.denied);
}

TEST_CASE("classify: a reported failure is the detail whether or not ready came before it") {
  for (bool ready : {false, true}) {
    auto verdict = classify(exited(125), reported({ready, "cannot execute bash"}));
    CHECK(verdict.outcome == BashOutcome::runner_failed);
    CHECK(verdict.failure == "cannot execute bash");
    CHECK(verdict.ran == false);
  }
}

TEST_CASE("classify: an end that was forced from outside is that and no denial") {
  Ending late{std::nullopt, SIGTERM, true, false};
  Ending aborted{std::nullopt, SIGTERM, false, true};
  for (const auto& evidence : {unconfined(), blind({}, "Permission denied"), reported(kReady)}) {
    CHECK(classify(late, evidence).outcome == BashOutcome::timed_out);
    CHECK(classify(aborted, evidence).outcome == BashOutcome::aborted);
    CHECK_FALSE(classify(late, evidence).denied);
  }
  // A command that ends itself with a status of its own after TERM was still ended from outside.
  CHECK(classify({7, std::nullopt, true, false}, blind({}, "Permission denied")).outcome ==
        BashOutcome::timed_out);
}

TEST_CASE("classify: a timeout before ready says that the command did not run") {
  Ending late{std::nullopt, SIGKILL, true, false};
  auto verdict = classify(late, reported({}));
  CHECK(verdict.outcome == BashOutcome::timed_out);
  CHECK(verdict.ran == false);
  CHECK(classify(late, reported(kReady)).ran == true);
  CHECK(classify(late, reported({false, "no rule"})).outcome == BashOutcome::runner_failed);
}

TEST_CASE("classify: a forced end outranks the rules of a runner without a channel") {
  CHECK(classify({125, std::nullopt, false, true}, blind("fake-runner: no")).outcome ==
        BashOutcome::aborted);
}
