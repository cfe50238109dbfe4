// SPDX-License-Identifier: MIT
// What became of a line, in one word, for a summary and for a person.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace stockade {

// The outcome of a bash call; `background` where it started a job; of other tools `ok` or `error`,
// and `no-call` for a line that is none.
inline std::string outcome_of(const nlohmann::ordered_json& result) {
  if (result.contains("line")) return "no-call";
  auto data = result.find("structuredContent");
  const bool object = data != result.end() && data->is_object();
  if (object && data->contains("outcome")) return data->value("outcome", "error");
  if (result.value("isError", true)) return "error";
  // Jobs have a kind of their own, that of what runs in them.
  return object && data->value("kind", "") == "background" ? "background" : "ok";
}

}  // namespace stockade
