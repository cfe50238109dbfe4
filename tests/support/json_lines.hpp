// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace stockade::test {

// One value a line; throws where a line is none.
inline std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> values;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    values.push_back(nlohmann::json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  return values;
}

}  // namespace stockade::test
