// SPDX-License-Identifier: MIT
#include "bash-sandbox/utf8_text.hpp"
#include "plugins/tool-bash/bash_tool.hpp"
#include "sandbox/errors.hpp"

namespace stockade {

namespace {

void add_line(std::string& text, const std::string& line) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += line;
}

}  // namespace

std::string render_result(const BashResult& result, bool offer_escalation) {
  std::string text = text_of(result.out);
  if (result.err.total > 0) {
    add_line(text, "[stderr]\n");
    text += text_of(result.err);
  }
  if (text.empty()) text = "(no output)";
  for (const CapturedStream* stream : {&result.out, &result.err})
    if (stream->truncated)
      add_line(text, "[output truncated; full output: " +
                         (stream->spill_path ? valid_utf8(*stream->spill_path) : "(unavailable)") +
                         "]");
  if (result.timed_out)
    add_line(text, "[timed out after " + std::to_string(result.timeout.count()) + "ms]");
  if (result.sandbox.denied) {
    add_line(text, denial_marker(result.sandbox.mode));
    if (offer_escalation && !wider_modes(result.sandbox.mode).empty())
      add_line(text, escalation_hint("command"));
  }
  if (result.signal)
    add_line(text, "[killed by signal: " + signal_name(*result.signal) + "]");
  else if (result.exit_code && *result.exit_code != 0)
    add_line(text, "[exit code: " + std::to_string(*result.exit_code) + "]");
  return text;
}

}  // namespace stockade
