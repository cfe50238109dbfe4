// SPDX-License-Identifier: MIT
#include "bash-sandbox/result.hpp"

#include <cstring>
#include <nlohmann/json.hpp>

#include "bash-sandbox/utf8_text.hpp"
#include "framework/error.hpp"
#include "framework/fields.hpp"

namespace stockade {

std::string to_string(BashOutcome outcome) {
  return enum_name(outcome);
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string text_of(const CapturedStream& stream) {
  std::string_view bytes = stream.bytes;
  return valid_utf8(stream.truncated ? from_character_start(bytes) : bytes);
}

namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json stream_json(const CapturedStream& stream) {
  Json json{{"text", text_of(stream)}, {"truncated", stream.truncated}, {"bytes", stream.total}};
  if (stream.spill_path) json["spillPath"] = valid_utf8(*stream.spill_path);
  if (stream.spill_note) json["spillNote"] = valid_utf8(*stream.spill_note);
  return json;
}

Json sandbox_json(const SandboxFacts& facts) {
  Json json{{"mode", to_string(facts.mode)}};
  if (facts.backend) json["backend"] = *facts.backend;
  if (facts.enforcement) json["enforcement"] = to_string(*facts.enforcement);
  json["denied"] = facts.denied;
  json["runnerFailed"] = facts.runner_failed;
  json["ran"] = or_null(facts.ran);
  if (facts.evidence) json["evidence"] = valid_utf8(*facts.evidence);
  return json;
}

}  // namespace

BashResult failure_result(const std::exception_ptr& error, SandboxMode mode) {
  BashResult result;
  result.error = CallError{code_of(error, "INTERNAL"), describe(error)};
  result.sandbox.mode = mode;
  result.sandbox.ran = false;
  // A request that cannot be run is no fault of the sandbox; all else is the sandbox refusing.
  bool request = false;
  for (const char* code : {"ARGUMENTS_INVALID", "ENVIRONMENT_INVALID", "REQUEST_INVALID",
                           "SHELL_BUSY", "SHELL_ENVIRONMENT_INVALID"})
    request |= result.error->code == code;
  result.sandbox.runner_failed = !request;
  result.outcome = request ? BashOutcome::failed : BashOutcome::runner_failed;
  return result;
}

nlohmann::ordered_json to_json(const BashResult& result) {
  Json json{{"outcome", to_string(result.outcome)},
            {"exitCode", or_null(result.exit_code)},
            {"signal", result.signal ? Json(signal_name(*result.signal)) : Json(nullptr)},
            {"timedOut", result.timed_out},
            {"aborted", result.aborted},
            {"timeoutMs", result.timeout.count()},
            {"stdout", stream_json(result.out)},
            {"stderr", stream_json(result.err)},
            {"sandbox", sandbox_json(result.sandbox)},
            {"queuedMs", result.queued.count()},
            {"durationMs", result.duration.count()}};
  for (const auto& note : result.notes) json["notes"].push_back(valid_utf8(note));
  if (result.error)
    json["error"] = {{"code", result.error->code}, {"message", valid_utf8(result.error->message)}};
  return json;
}

}  // namespace stockade
