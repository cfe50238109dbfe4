// SPDX-License-Identifier: MIT
#include "plugins/mcp/protocol.hpp"

namespace stockade::mcp {

std::string negotiate(const nlohmann::json& wanted) {
  if (wanted.is_string())
    for (std::string_view version : kLegacy)
      if (wanted.get_ref<const std::string&>() == version) return std::string(version);
  return std::string(kLatestLegacy);
}

rpc::Json supported_versions() {
  rpc::Json versions{std::string(kModern)};
  for (std::string_view version : kLegacy) versions.push_back(std::string(version));
  return versions;
}

bool elicits_forms(const nlohmann::json& capabilities) {
  if (!capabilities.is_object()) return false;
  auto found = capabilities.find("elicitation");
  if (found == capabilities.end() || !found->is_object()) return false;
  // An empty object says forms; one that names modes must name this.
  return found->contains("form") || !found->contains("url");
}

std::variant<std::optional<ClientFacts>, MetaError> read_meta(const nlohmann::json& params) {
  using Read = std::optional<ClientFacts>;
  auto meta = params.find("_meta");
  if (meta == params.end() || !meta->is_object()) return Read();
  auto version = meta->find("io.modelcontextprotocol/protocolVersion");
  if (version == meta->end()) return Read();
  if (!version->is_string())
    return MetaError{
        rpc::kInvalidParams, "io.modelcontextprotocol/protocolVersion must be a string", {}};
  if (version->get_ref<const std::string&>() != kModern)
    return MetaError{kUnsupportedVersion,
                     "Unsupported protocol version",
                     {{"supported", supported_versions()}, {"requested", *version}}};
  auto capabilities = meta->find("io.modelcontextprotocol/clientCapabilities");
  if (capabilities == meta->end() || !capabilities->is_object())
    return MetaError{rpc::kInvalidParams,
                     "_meta lacks the object io.modelcontextprotocol/clientCapabilities",
                     {}};
  ClientFacts facts;
  facts.modern = true;
  facts.elicits_forms = elicits_forms(*capabilities);
  facts.form_mode_named = true;
  auto level = meta->find("io.modelcontextprotocol/logLevel");
  if (level != meta->end()) {
    if (!level->is_string() || !log_severity(level->get<std::string>()))
      return MetaError{
          rpc::kInvalidParams, "io.modelcontextprotocol/logLevel is no level of the protocol", {}};
    facts.log_level = level->get<std::string>();
  }
  return Read(facts);
}

std::optional<int> log_severity(std::string_view level) {
  static constexpr std::string_view kLevels[] = {"debug", "info",     "notice", "warning",
                                                 "error", "critical", "alert",  "emergency"};
  for (int i = 0; i < 8; ++i)
    if (kLevels[i] == level) return i;
  return std::nullopt;
}

}  // namespace stockade::mcp
