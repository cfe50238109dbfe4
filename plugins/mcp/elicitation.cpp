// SPDX-License-Identifier: MIT
#include "plugins/mcp/elicitation.hpp"

namespace stockade::mcp {

namespace {

// A command of a model, for a person to judge: nothing in it may move the cursor or hide.
std::string shown(const std::string& text) {
  constexpr std::size_t kMost = 2000;
  std::string safe;
  for (char c : text.substr(0, kMost)) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\t' || (byte >= 0x20 && byte != 0x7f)) {
      safe += c;
    } else {
      constexpr char kHex[] = "0123456789abcdef";
      safe += "\\x";
      safe += kHex[byte >> 4];
      safe += kHex[byte & 15];
    }
  }
  if (text.size() > kMost) safe += "\n(and " + std::to_string(text.size() - kMost) + " bytes more)";
  return safe;
}

}  // namespace

rpc::Json approval_form(const Escalation& escalation, bool name_mode) {
  std::string reach = escalation.to == SandboxMode::danger_full_access
                          ? "without any sandbox"
                          : "with permission to write " + escalation.workspace_root;
  std::string message = "Run this command once " + reach + " (" + to_string(escalation.to) +
                        " instead of " + to_string(escalation.from) + ")?\n\n" +
                        shown(escalation.detail) + "\n\n" + shown(escalation.reason);
  rpc::Json params;
  if (name_mode) params["mode"] = "form";
  params["message"] = std::move(message);
  params["requestedSchema"] = {
      {"type", "object"},
      {"properties",
       {{"approve",
         {{"type", "boolean"},
          {"title", "Run it once in " + to_string(escalation.to) + " mode"},
          {"description", "For this one call only; nothing is remembered."}}}}},
      {"required", {"approve"}}};
  return params;
}

EscalationOutcome read_answer(const nlohmann::json& answer) {
  if (!answer.is_object()) return EscalationOutcome::unavailable;
  auto action = answer.value("action", nlohmann::json());
  if (action == "decline") return EscalationOutcome::rejected;
  if (action == "cancel") return EscalationOutcome::cancelled;
  if (action != "accept") return EscalationOutcome::unavailable;
  auto content = answer.value("content", nlohmann::json());
  bool yes = content.is_object() && content.value("approve", nlohmann::json()) == true;
  return yes ? EscalationOutcome::approved : EscalationOutcome::rejected;
}

}  // namespace stockade::mcp
