// SPDX-License-Identifier: MIT
#include "bash-sandbox/result.hpp"

#include <signal.h>

#include <nlohmann/json.hpp>

#include "framework/error.hpp"
#include "sandbox/errors.hpp"
#include "tests/support/catch.hpp"

using namespace stockade;

TEST_CASE("result: each outcome has its name") {
  CHECK(to_string(BashOutcome::ok) == "ok");
  CHECK(to_string(BashOutcome::failed) == "failed");
  CHECK(to_string(BashOutcome::denied) == "denied");
  CHECK(to_string(BashOutcome::runner_failed) == "runner-failed");
  CHECK(to_string(BashOutcome::timed_out) == "timed-out");
  CHECK(to_string(BashOutcome::aborted) == "aborted");
}

TEST_CASE("result: a signal has its name and an unknown one its number") {
  CHECK(signal_name(SIGTERM) == "SIGTERM");
  CHECK(signal_name(SIGKILL) == "SIGKILL");
  CHECK(signal_name(4711) == "signal 4711");
}

TEST_CASE("result: the JSON of a command that ran") {
  BashResult result;
  result.outcome = BashOutcome::denied;
  result.exit_code = 3;
  result.timeout = std::chrono::milliseconds(120000);
  result.queued = std::chrono::milliseconds(7);
  result.duration = std::chrono::milliseconds(12);
  result.out = {"out\n", false, 4, std::nullopt, std::nullopt};
  result.err = {"tail", true, 900, "/var/tmp/x.log", "the spill file ends at its cap"};
  result.sandbox = {SandboxMode::read_only,    "bwrap", SandboxEnforcement::full, true, false, true,
                    "x: Read-only file system"};
  CHECK(to_json(result).dump() ==
        R"({"outcome":"denied","exitCode":3,"signal":null,"timedOut":false,"aborted":false,)"
        R"("timeoutMs":120000,"stdout":{"text":"out\n","truncated":false,"bytes":4},)"
        R"("stderr":{"text":"tail","truncated":true,"bytes":900,"spillPath":"/var/tmp/x.log",)"
        R"("spillNote":"the spill file ends at its cap"},"sandbox":{"mode":"read-only",)"
        R"("backend":"bwrap","enforcement":"full","denied":true,"runnerFailed":false,"ran":true,)"
        R"("evidence":"x: Read-only file system"},"queuedMs":7,"durationMs":12})");
}

TEST_CASE("result: facts that do not exist are absent from the JSON") {
  BashResult result;
  result.sandbox.mode = SandboxMode::danger_full_access;
  result.signal = SIGKILL;
  auto json = to_json(result);
  CHECK(json["signal"] == "SIGKILL");
  CHECK(json["exitCode"].is_null());
  CHECK(json["sandbox"]["ran"].is_null());
  CHECK(json["sandbox"]["mode"] == "danger-full-access");
  for (const char* key : {"backend", "enforcement", "evidence"})
    CHECK_FALSE(json["sandbox"].contains(key));
  CHECK_FALSE(json["stdout"].contains("spillPath"));
  CHECK_FALSE(json.contains("error"));
  CHECK_FALSE(json.contains("notes"));
  result.notes = {"something \xff"};
  CHECK(to_json(result)["notes"] == nlohmann::ordered_json{"something \ufffd"});
}

TEST_CASE("result: bytes of any kind make valid JSON and keep their count") {
  BashResult result;
  result.out.bytes = std::string("a\377\0b\033[31m\r\n", 11);
  result.out.total = 11;
  result.err.spill_path = "/x\xff";
  result.err.spill_note = "\xff";
  result.sandbox.evidence = "\xff: Permission denied";
  result.error = CallError{"X", "bad \xff name"};
  auto json = to_json(result);
  std::string text;
  CHECK_NOTHROW(text = json.dump());
  CHECK_THAT(text, ContainsSubstring("a\xEF\xBF\xBD\\u0000b\\u001b[31m\\r\\n"));
  CHECK(json["stdout"]["bytes"] == 11);
}

TEST_CASE("result: a tail that was cut inside a character begins with the next one") {
  BashResult result;
  result.out = {"\x98\x80z", true, 900, std::nullopt, std::nullopt};
  CHECK(to_json(result)["stdout"]["text"] == "z");
  // Where nothing was cut off the same bytes are what the command wrote.
  result.out.truncated = false;
  CHECK_THAT(to_json(result)["stdout"]["text"].get<std::string>(),
             ContainsSubstring("\xEF\xBF\xBD"));
}

TEST_CASE("result: a refusal of the sandbox is a runner failure that did not run") {
  auto result = failure_result(
      std::make_exception_ptr(SandboxUnavailableError(ConfinedSandboxMode::read_only, "why")),
      SandboxMode::read_only);
  CHECK(result.outcome == BashOutcome::runner_failed);
  CHECK(result.sandbox.runner_failed);
  CHECK(result.sandbox.ran == false);
  REQUIRE(result.error);
  CHECK(result.error->code == "SANDBOX_UNAVAILABLE");
  CHECK_THAT(result.error->message, ContainsSubstring("Runner failure: why"));
  CHECK(to_json(result)["error"]["code"] == "SANDBOX_UNAVAILABLE");
}

TEST_CASE("result: a bad request is a failure and not the runner's") {
  for (const char* code : {"REQUEST_INVALID", "ENVIRONMENT_INVALID", "ARGUMENTS_INVALID"}) {
    auto result = failure_result(std::make_exception_ptr(Error(code, "bad", "x")),
                                 SandboxMode::workspace_write);
    CHECK(result.outcome == BashOutcome::failed);
    CHECK_FALSE(result.sandbox.runner_failed);
    CHECK(result.sandbox.ran == false);
    CHECK(result.sandbox.mode == SandboxMode::workspace_write);
    CHECK(result.error->code == code);
  }
}

TEST_CASE("result: a failure of another kind has a code too") {
  auto result =
      failure_result(std::make_exception_ptr(std::runtime_error("boom")), SandboxMode::read_only);
  CHECK(result.error->code == "INTERNAL");
  CHECK(result.error->message == "boom");
}
