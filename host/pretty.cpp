// SPDX-License-Identifier: MIT
#include "host/pretty.hpp"

#include <nlohmann/json.hpp>

#include "framework/json.hpp"
#include "plugins/script/outcome.hpp"

namespace stockade {

std::string printable(const std::string& text) {
  std::string out;
  auto escape = [&out](unsigned char byte) {
    out += "\\x";
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {  // a C1 control in UTF-8
      escape(static_cast<unsigned char>(next));
      ++i;
    } else if (byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7f)) {
      out += text[i];
    } else {
      escape(byte);
    }
  }
  return out;
}

namespace {

std::string indented(const std::string& text, const std::string& margin) {
  std::string out;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    out += margin + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return out;
}

struct Word {
  const char* text;
  const char* colour;
};

Word headline(const std::string& outcome) {
  if (outcome == "ok") return {"ok", "32"};
  if (outcome == "failed") return {"failed", "33"};
  if (outcome == "denied") return {"DENIED by the sandbox", "35"};
  if (outcome == "timed-out") return {"timed out", "33"};
  if (outcome == "aborted") return {"aborted", "33"};
  if (outcome == "background") return {"started in the background", "32"};
  if (outcome == "runner-failed") return {"NOT RUN: the sandbox could not run it", "31"};
  if (outcome == "no-call") return {"error: the line is no call", "31"};
  return {"error", "31"};
}

// What a person can do about a denial.
std::string advice(const nlohmann::ordered_json& data) {
  std::string mode = data["sandbox"].value("mode", "");
  return mode == "read-only"
             ? "what to do: this mode writes nothing; a command that must write needs --mode "
               "workspace-write"
             : "what to do: this mode writes only the workspace and /tmp; let the command write "
               "there, or choose another --workspace";
}

}  // namespace

std::string pretty_result(const nlohmann::json& call, const nlohmann::ordered_json& result,
                          bool colour) {
  auto paint = [&](const std::string& text, const std::string& code) {
    return colour ? "\033[" + code + "m" + text + "\033[0m" : text;
  };
  const auto& data = result["structuredContent"];
  auto one_line = [](std::string text_of_id) {
    for (char& c : text_of_id)
      if (c == '\n' || c == '\t') c = ' ';
    return text_of_id;
  };
  std::string id = result["id"].is_string() ? result["id"].get<std::string>()
                   : result["id"].is_null() ? "line " + std::to_string(result.value("line", 0))
                                            : json_text(result["id"]);
  std::string command;
  if (call.is_object() && call.contains("arguments") && call["arguments"].is_object())
    if (auto found = call["arguments"].find("command");
        found != call["arguments"].end() && found->is_string())
      command = found->get<std::string>();

  std::string text = paint("[" + one_line(printable(id)) + "]", "1") + " ";
  text +=
      command.empty() ? std::string("\n") : "$ " + printable(indented(command, "      ").substr(6));
  Word word = headline(outcome_of(result));
  text += "    " + paint(word.text, word.colour);
  if (data.contains("exitCode") && data["exitCode"].is_number() && data["exitCode"] != 0)
    text += ", exit code " + json_text(data["exitCode"]);
  if (data.contains("signal") && data["signal"].is_string())
    text += ", " + data["signal"].get<std::string>();
  if (data.contains("sandbox")) {
    const auto& sandbox = data["sandbox"];
    text += "  (" + sandbox.value("mode", "");
    if (sandbox.contains("backend")) text += ", " + sandbox.value("backend", "");
    if (sandbox.contains("enforcement")) text += ", " + sandbox.value("enforcement", "");
    text += ", " + json_text(data["durationMs"]) + " ms)";
  }
  text += "\n";
  for (const auto& part : result["content"])
    text += indented(printable(part.value("text", "")), "    | ");
  if (data.value("outcome", "") == "denied") text += "    " + advice(data) + "\n";
  if (auto expectation = result.find("expectation"); expectation != result.end()) {
    if (expectation->value("met", false)) {
      text += "    " + paint("as expected", "32") + "\n";
    } else {
      for (const auto& each : (*expectation)["mismatches"])
        text +=
            "    " + paint("NOT AS EXPECTED: ", "31") + printable(each.get<std::string>()) + "\n";
    }
  }
  return text + "\n";
}

}  // namespace stockade
