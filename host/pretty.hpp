// SPDX-License-Identifier: MIT
// A tool call and what became of it, for a person.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stockade {

// `call` and `result` as a ResultSink gets them. Colours only where `colour` is set. Control
// characters of a command are shown escaped, so that its output cannot rewrite what stands before
// it.
std::string pretty_result(const nlohmann::json& call, const nlohmann::ordered_json& result,
                          bool colour);

// Control characters but newline and tab escaped.
std::string printable(const std::string& text);

}  // namespace stockade
