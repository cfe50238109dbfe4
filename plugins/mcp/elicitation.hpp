// SPDX-License-Identifier: MIT
// An approval as a form that an MCP client shows its user.
#pragma once

#include <nlohmann/json.hpp>

#include "plugins/mcp/jsonrpc.hpp"
#include "sandbox/escalation.hpp"

namespace stockade::mcp {

// The params of `elicitation/create`. From 2025-11-25 on they say that they are a form.
rpc::Json approval_form(const Escalation& escalation, bool name_mode);

// What an answer means. Only an accepted form that says yes in so many words approves.
EscalationOutcome read_answer(const nlohmann::json& answer);

}  // namespace stockade::mcp
