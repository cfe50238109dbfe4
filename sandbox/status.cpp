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

void StatusReader::feed(std::string_view bytes) {
  bytes = bytes.substr(0, kMaxStatusBytes - fed_);
  fed_ += bytes.size();
  for (std::size_t end; (end = bytes.find('\n')) != std::string_view::npos;) {
    line_ += bytes.substr(0, end);
    read_line(line_);
    line_.clear();
    bytes.remove_prefix(end + 1);
  }
  line_ += bytes;
}

const RunnerStatus& StatusReader::finish() {
  if (!line_.empty()) read_line(line_);
  line_.clear();
  return status_;
}

void StatusReader::read_line(std::string_view line) {
  auto parsed = parse_json(line);
  nlohmann::json json = parsed ? std::move(*parsed) : nlohmann::json();
  std::string kind = text_of(json, "status");
  if (kind == "ready" && !status_.ready) {
    status_.ready = true;
  } else if (kind == "exited" && number_of(json, "exitCode")) {
    status_.exit_code = number_of(json, "exitCode");
  } else if (kind == "signaled" && number_of(json, "signal")) {
    status_.signal = number_of(json, "signal");
  } else if (kind == "refused" || kind == "exec-failed") {
    std::string message = text_of(json, "message");
    if (status_.failure.empty()) status_.failure = message.empty() ? kind : message;
    if (!status_.error) status_.error = number_of(json, "errno");
  } else if (status_.failure.empty()) {
    status_.failure =
        "the runner reported something that is no status: " + std::string(line.substr(0, 200));
  }
}

RunnerStatus read_status(std::string_view bytes) {
  StatusReader reader;
  reader.feed(bytes);
  return reader.finish();
}

}  // namespace stockade
