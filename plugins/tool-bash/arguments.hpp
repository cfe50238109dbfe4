// SPDX-License-Identifier: MIT
// What a model may say to `bash`: the schema that it reads, and the check of what it says.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sandbox/escalation.hpp"

namespace stockade {

struct BashArguments {
  std::string command;
  std::optional<std::string> description;
  std::optional<double> timeout_ms;
  std::optional<std::string> workdir;
  bool run_in_background = false;
  EscalationArguments escalation;
};

// Which of the tool's abilities this deployment has.
struct BashAbilities {
  bool background = true;
  bool escalation = true;  // over an executor that confines
};

// Built from named fields only: nothing else that a model sends reaches the executor. Throws Error
// `ARGUMENTS_INVALID` naming the property.
BashArguments read_bash_arguments(const nlohmann::json& arguments, const BashAbilities& abilities);

nlohmann::ordered_json bash_input_schema(const BashAbilities& abilities);
nlohmann::ordered_json bash_output_schema();

}  // namespace stockade
