// SPDX-License-Identifier: MIT
// One line of a script, and what it says must come of it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace stockade {

// What a result must be for the line's script to be in order; what is absent does not matter.
struct Expectation {
  std::optional<std::string> outcome;
  std::optional<std::int64_t> exit_code;
  std::optional<std::string> text;     // that the result's text contains
  std::optional<std::string> no_text;  // that it does not contain
  std::optional<bool> denied;
  std::optional<std::string> error;  // its code; for a call that cannot be made
};

struct ScriptLine {
  nlohmann::json id;
  std::string tool;
  nlohmann::json arguments = nlohmann::json::object();
  std::string session;
  bool parallel = false;  // with its neighbours that are, too
  std::optional<Expectation> expect;
};

// Throws Error `SCRIPT_LINE_INVALID` with every fault; `line.id` is read as far as it can be.
void read_script_line(const nlohmann::json& json, ScriptLine& line);

// A sentence for each way in which `result` is not what was expected.
std::vector<std::string> mismatches(const Expectation& expected,
                                    const nlohmann::ordered_json& result);

}  // namespace stockade
