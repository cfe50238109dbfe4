// SPDX-License-Identifier: MIT
#include "plugins/approval/approval_service.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "framework/completion.hpp"
#include "framework/error.hpp"
#include "plugins/approval/policy_answerer.hpp"
#include "plugins/approval/terminal_answerer.hpp"
#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"

using namespace stockade;
using nlohmann::ordered_json;
using stockade::test::await_task;

namespace {

class RecordingSession final : public SessionLog {
 public:
  const Session& session() const override { return session_; }
  void append(std::string type, ordered_json data) override {
    if (fail) throw Error("SESSION_UNWRITABLE", "the disk is full");
    events.emplace_back(std::move(type), std::move(data));
  }
  std::vector<std::pair<std::string, ordered_json>> events;
  bool fail = false;

 private:
  Session session_{"s", std::nullopt, {}};
};

class FakeAnswerer final : public Answerer {
 public:
  using Answer = std::optional<EscalationOutcome>;
  explicit FakeAnswerer(Answer answer) : answer_(answer) {}
  Task<Answer> answer(Escalation, AbortSignal) override {
    ++asked;
    if (throws_at_once) throw Error("X", "at once");
    return later();
  }
  Task<Answer> later() {
    if (throws) throw Error("X", "broken");
    if (pending) {
      Completion<> wait = *pending;
      co_await wait;
    }
    ++answered;
    co_return answer_;
  }
  int asked = 0;
  int answered = 0;
  bool throws = false;
  bool throws_at_once = false;
  std::optional<Completion<>> pending;

 private:
  Answer answer_;
};

struct Rig {
  EscalationOutcome ask(AbortSignal abort = {}, std::shared_ptr<Answerer> asker = nullptr) {
    return await_task(loop, service.request({escalation, session, std::move(asker)}, abort));
  }
  std::shared_ptr<FakeAnswerer> add(FakeAnswerer::Answer answer,
                                    Approval::Place place = Approval::Place::after_asker) {
    auto answerer = std::make_shared<FakeAnswerer>(answer);
    service.add(answerer, place);
    return answerer;
  }
  // One question and one decision about it.
  std::string decided() const {
    REQUIRE(session->events.size() == 2);
    CHECK(session->events[0].first == "approval/asked");
    CHECK(session->events[1].first == "approval/decided");
    CHECK(session->events[0].second["id"] == session->events[1].second["id"]);
    return session->events[1].second["outcome"];
  }
  Loop loop;
  ApprovalService service{loop, Log::standard_error(LogLevel::off)};
  std::shared_ptr<RecordingSession> session = std::make_shared<RecordingSession>();
  Escalation escalation{
      SandboxMode::read_only, SandboxMode::workspace_write, "/w", "bash", "call-1", "because", "x"};
};

}  // namespace

TEST_CASE("approval: nobody to ask is no approval") {
  Rig rig;
  CHECK_FALSE(rig.service.has_answerers());
  CHECK(rig.ask() == EscalationOutcome::unavailable);
  CHECK(rig.decided() == "unavailable");
}

TEST_CASE("approval: an answerer that fails is no approval and none after it is asked") {
  for (bool at_once : {false, true}) {
    Rig rig;
    auto broken = rig.add(EscalationOutcome::approved);
    (at_once ? broken->throws_at_once : broken->throws) = true;
    auto next = rig.add(EscalationOutcome::approved);
    CHECK(rig.ask() == EscalationOutcome::unavailable);
    CHECK(next->asked == 0);
    CHECK(rig.decided() == "unavailable");
  }
}

TEST_CASE("approval: an answer that is none is no approval") {
  Rig rig;
  rig.add(static_cast<EscalationOutcome>(9));
  CHECK(rig.ask() == EscalationOutcome::unavailable);
  CHECK(rig.decided() == "unavailable");
}

TEST_CASE("approval: the first answer counts and one who has no say passes the question on") {
  Rig rig;
  auto silent = rig.add(std::nullopt);
  auto first = rig.add(EscalationOutcome::rejected);
  auto second = rig.add(EscalationOutcome::approved);
  CHECK(rig.ask() == EscalationOutcome::rejected);
  CHECK(silent->asked == 1);
  CHECK(first->asked == 1);
  CHECK(second->asked == 0);

  rig.service.remove(first);
  CHECK(rig.ask() == EscalationOutcome::approved);
  rig.service.remove(second);
  CHECK(rig.ask() == EscalationOutcome::unavailable);
}

TEST_CASE("approval: the maker of the call is asked between those before and those after it") {
  Rig rig;
  auto after = rig.add(EscalationOutcome::rejected);
  auto before = rig.add(std::nullopt, Approval::Place::before_asker);
  auto asker = std::make_shared<FakeAnswerer>(EscalationOutcome::approved);
  CHECK(rig.ask({}, asker) == EscalationOutcome::approved);
  CHECK(before->asked == 1);
  CHECK(after->asked == 0);
}

TEST_CASE("approval: an aborted call asks nobody") {
  Rig rig;
  auto answerer = rig.add(EscalationOutcome::approved);
  AbortController abort;
  abort.abort();
  CHECK(rig.ask(abort.signal()) == EscalationOutcome::cancelled);
  CHECK(answerer->asked == 0);
  CHECK(rig.session->events.empty());
}

TEST_CASE("approval: an abort ends a question at once and a late answer is nothing") {
  Rig rig;
  auto answerer = rig.add(EscalationOutcome::approved);
  answerer->pending.emplace(rig.loop);
  AbortController abort;
  rig.loop.post([&] { rig.loop.post([&] { abort.abort(); }); });
  CHECK(rig.ask(abort.signal()) == EscalationOutcome::cancelled);
  CHECK(rig.decided() == "cancelled");
  answerer->pending->settle();
  stockade::test::run_for(rig.loop, std::chrono::milliseconds(20));
  CHECK(answerer->asked == 1);
  CHECK(answerer->answered == 0);
  CHECK(rig.session->events.size() == 2);
}

TEST_CASE("approval: the log has what was asked and nothing that was not said") {
  Rig rig;
  rig.ask();
  CHECK(rig.session->events[0].second == ordered_json{{"id", "approval-1"},
                                                      {"toolName", "bash"},
                                                      {"callId", "call-1"},
                                                      {"reason", "because"},
                                                      {"from", "read-only"},
                                                      {"to", "workspace-write"}});
  rig.escalation.call_id.clear();
  rig.escalation.reason.clear();
  rig.ask();
  CHECK_FALSE(rig.session->events[2].second.contains("callId"));
  CHECK_FALSE(rig.session->events[2].second.contains("reason"));
  CHECK(rig.session->events[2].second["id"] == "approval-2");
}

TEST_CASE("approval: what cannot be logged is not granted") {
  Rig rig;
  rig.add(EscalationOutcome::approved);
  rig.session->fail = true;
  CHECK_THROWS_AS(rig.ask(), Error);
}

// ---- answerers --------------------------------------------------------------------------------

TEST_CASE("approval policy: the first rule for the mode and the workspace answers") {
  Loop loop;
  PolicyAnswerer answerer({{SandboxMode::workspace_write, "/usr/share", RuleAnswer::reject},
                           {SandboxMode::workspace_write, "/usr", RuleAnswer::approve},
                           {SandboxMode::danger_full_access, "", RuleAnswer::reject}});
  auto ask = [&](SandboxMode to, const std::string& workspace) {
    Escalation escalation{SandboxMode::read_only, to, workspace, "bash", "1", "why", "rm -rf /"};
    return await_task(loop, answerer.answer(escalation, {}));
  };
  CHECK(ask(SandboxMode::workspace_write, "/usr") == EscalationOutcome::approved);
  CHECK(ask(SandboxMode::workspace_write, "/usr/lib") == EscalationOutcome::approved);
  CHECK(ask(SandboxMode::workspace_write, "/usr/share/doc") == EscalationOutcome::rejected);
  CHECK(ask(SandboxMode::workspace_write, "/usrlocal") == std::nullopt);
  CHECK(ask(SandboxMode::workspace_write, "/") == std::nullopt);
  CHECK(ask(SandboxMode::danger_full_access, "/usr") == EscalationOutcome::rejected);
}

TEST_CASE("approval policy: a rule that means nothing is refused") {
  auto refused = [](ApprovalRule rule) {
    return stockade::test::thrown_by([&] { check_approval_policy({{std::move(rule)}}); });
  };
  CHECK_THAT(refused({SandboxMode::read_only, "", RuleAnswer::approve}).text,
             ContainsSubstring("$.rules[0].mode"));
  CHECK_THAT(refused({SandboxMode::workspace_write, "relative", RuleAnswer::approve}).text,
             ContainsSubstring("$.rules[0].workspace"));
  CHECK(refused({SandboxMode::workspace_write, "/w", RuleAnswer::approve}).code.empty());
}

TEST_CASE("approval terminal: only yes approves") {
  struct Row {
    std::string typed;
    EscalationOutcome outcome;
  };
  for (const auto& row :
       {Row{"y\n", EscalationOutcome::approved}, Row{"yes\n", EscalationOutcome::approved},
        Row{"n\n", EscalationOutcome::rejected}, Row{"\n", EscalationOutcome::rejected},
        Row{"yeah\n", EscalationOutcome::rejected}, Row{" y\n", EscalationOutcome::rejected},
        Row{"\x04", EscalationOutcome::cancelled}}) {
    CAPTURE(row.typed);
    Loop loop;
    int person = posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(person >= 0);
    REQUIRE(grantpt(person) == 0);
    REQUIRE(unlockpt(person) == 0);
    Fd held(person);
    {
      TerminalAnswerer answerer(loop, Fd(open(ptsname(person), O_RDWR | O_NOCTTY)), nullptr);
      REQUIRE(write(person, "y\n", 2) == 2);  // before it is asked
      std::optional<std::optional<EscalationOutcome>> outcome;
      TaskScope scope(loop, [](std::exception_ptr) {});
      Escalation escalation{
          SandboxMode::read_only, SandboxMode::workspace_write, "/w", "bash", "1", "why",
          "make \x1b[2J"};
      scope.start(stockade::test::store_value(answerer.answer(escalation, {}), &outcome));
      stockade::test::run_for(loop, std::chrono::milliseconds(50));
      CHECK_FALSE(outcome);
      char shown[4096];
      ssize_t n = read(person, shown, sizeof shown);
      REQUIRE(n > 0);
      std::string text(shown, static_cast<std::size_t>(n));
      CHECK_THAT(text, ContainsSubstring("make \\x1b[2J") && ContainsSubstring("/w") &&
                           ContainsSubstring("[y/N]"));
      REQUIRE(write(person, row.typed.data(), row.typed.size()) ==
              static_cast<ssize_t>(row.typed.size()));
      REQUIRE(stockade::test::wait_until(loop, [&] { return outcome.has_value(); }));
      CHECK(*outcome == row.outcome);
    }
    loop.drain();
  }
}
