// SPDX-License-Identifier: MIT
// The two eras of MCP. Up to 2025-11-25 a client opens with `initialize`, and the server may ask it
// questions; from 2026-07-28 on every request says its version and the client's capabilities, and a
// question is an interim result that the client answers by asking again.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "plugins/mcp/jsonrpc.hpp"

namespace stockade::mcp {

inline constexpr std::string_view kModern = "2026-07-28";
inline constexpr std::string_view kLatestLegacy = "2025-11-25";
inline constexpr std::string_view kLegacy[] = {kLatestLegacy, "2025-06-18", "2025-03-26",
                                               "2024-11-05"};

inline constexpr int kUnsupportedVersion = -32022;

// The version that answers an `initialize` which asks for `wanted`: the same where it is one of
// kLegacy, else the latest of them.
std::string negotiate(const nlohmann::json& wanted);

rpc::Json supported_versions();

// What the client can do, as far as it matters here.
struct ClientFacts {
  bool modern = false;
  bool elicits_forms = false;
  bool form_mode_named = false;  // from 2025-11-25 on a form says that it is one
  std::optional<std::string> log_level;
};

bool elicits_forms(const nlohmann::json& capabilities);

// Reads a request's own `_meta`; absent for one of the legacy era.
struct MetaError {
  int code;
  std::string message;
  rpc::Json data;
};
std::variant<std::optional<ClientFacts>, MetaError> read_meta(const nlohmann::json& params);

// MCP's eight levels, as numbers that grow with severity; absent for what is none.
std::optional<int> log_severity(std::string_view level);

}  // namespace stockade::mcp
