// SPDX-License-Identifier: MIT
#include "sandbox/status.hpp"

#include <nlohmann/json.hpp>

namespace stockade {

RunnerStatus read_status(std::string_view bytes) {
  RunnerStatus status;
  while (!bytes.empty()) {
    std::size_t end = bytes.find('\n');
    std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    auto json = nlohmann::json::parse(line, nullptr, false);
    std::string kind = json.is_object() ? json.value("status", "") : "";
    if (kind == "ready" && !status.ready) {
      status.ready = true;
    } else if (kind == "refused" || kind == "exec-failed") {
      if (status.failure.empty()) status.failure = json.value("message", kind);
    } else if (status.failure.empty()) {
      status.failure = "the runner reported something that is no status: " +
                       std::string(line.substr(0, 200));
    }
  }
  return status;
}

}  // namespace stockade
