// SPDX-License-Identifier: MIT
#include "sandbox/status.hpp"

#include <nlohmann/json.hpp>

#include "framework/json.hpp"

namespace stockade {

namespace {

std::string text_of(const nlohmann::json& json, const char* key) {
  auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<int> number_of(const nlohmann::json& json, const char* key) {
  auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int>();
}

}  // namespace

RunnerStatus read_status(std::string_view bytes) {
  RunnerStatus status;
  while (!bytes.empty()) {
    std::size_t end = bytes.find('\n');
    std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    auto parsed = parse_json(line);
    nlohmann::json json = parsed ? std::move(*parsed) : nlohmann::json();
    std::string kind = text_of(json, "status");
    if (kind == "ready" && !status.ready) {
      status.ready = true;
    } else if (kind == "exited" && number_of(json, "exitCode")) {
      status.exit_code = number_of(json, "exitCode");
    } else if (kind == "signaled" && number_of(json, "signal")) {
      status.signal = number_of(json, "signal");
    } else if (kind == "refused" || kind == "exec-failed") {
      std::string message = text_of(json, "message");
      if (status.failure.empty()) status.failure = message.empty() ? kind : message;
    } else if (status.failure.empty()) {
      status.failure =
          "the runner reported something that is no status: " + std::string(line.substr(0, 200));
    }
  }
  return status;
}

}  // namespace stockade
