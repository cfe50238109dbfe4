// SPDX-License-Identifier: MIT
// JSON text in and out. Parsing and printing are compiled once, in libstockade.so: as templates
// they take longer to compile than everything else in a source file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "framework/api.hpp"

namespace stockade {

// Absent for what is no JSON. For documents of people use parse_config, which says what is wrong.
STOCKADE_API std::optional<nlohmann::json> parse_json(std::string_view text);

// One line. Invalid UTF-8 becomes U+FFFD; never throws for it.
STOCKADE_API std::string json_text(const nlohmann::json& value);
STOCKADE_API std::string json_text(const nlohmann::ordered_json& value);

}  // namespace stockade
