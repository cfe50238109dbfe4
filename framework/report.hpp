// SPDX-License-Identifier: MIT
// What is mounted, in which state, and what waits for what and why: for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "framework/api.hpp"
#include "framework/fiber.hpp"

namespace stockade {

struct FiberNeed {
  std::string key;
  std::string provider;  // who provides it, or says that it would; "" for nobody
  std::string why;       // it is not there; "" where it is
};

struct FiberReport {
  std::string name;
  FiberState state = FiberState::pending;
  std::string file;  // of its library; "" for code of the host
  std::vector<std::string> provides;
  std::vector<FiberNeed> needs;
  std::string error;  // of one that FAILED
  std::vector<FiberReport> children;
};

STOCKADE_API FiberReport report_of(const Fiber& fiber);

// Fibers that wait for each other in a ring, by the services that they say they provide.
STOCKADE_API std::vector<std::vector<std::string>> waiting_rings(const FiberReport& root);

STOCKADE_API std::string report_text(const FiberReport& root);
STOCKADE_API nlohmann::ordered_json report_json(const FiberReport& root);
// A flow chart: from providers to users, dotted where a service is not there.
STOCKADE_API std::string report_mermaid(const FiberReport& root);

}  // namespace stockade
