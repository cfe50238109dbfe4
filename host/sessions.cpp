// SPDX-License-Identifier: MIT
// `stockade sessions`: what the logs on disk say.
#include <iostream>
#include <nlohmann/json.hpp>

#include "framework/error.hpp"
#include "framework/json.hpp"
#include "host/commands.hpp"
#include "host/pretty.hpp"
#include "plugins/sessions/session_file.hpp"

namespace stockade {

namespace {

nlohmann::ordered_json summary(const std::string& directory, const std::string& id) {
  nlohmann::ordered_json json{{"id", id}};
  try {
    SessionRecord record = load_session(directory, id);
    if (record.session.cwd) json["cwd"] = *record.session.cwd;
    if (!record.session.events.empty()) json["mode"] = record.session.events.back().mode;
    json["events"] = record.events.size();
    json["last"] = record.events.back().value("time", "");
    if (record.torn_bytes > 0) json["tornBytes"] = record.torn_bytes;
  } catch (const Error& error) {
    json["error"] = {{"code", error.code()}, {"message", error.what()}};
  }
  return json;
}

void print_summary(const nlohmann::ordered_json& json) {
  std::cout << json.value("id", "") << "  ";
  if (json.contains("error")) {
    std::cout << "DAMAGED: " << printable(json["error"].value("message", "")) << '\n';
    return;
  }
  std::cout << json.value("last", "") << "  " << json.value("mode", "default mode") << "  "
            << json.value("events", 0) << " events  " << printable(json.value("cwd", ""));
  if (json.contains("tornBytes")) std::cout << "  (its last line was not finished)";
  std::cout << '\n';
}

void print_event(const nlohmann::json& event) {
  std::cout << event.value("time", "") << "  " << printable(event.value("type", ""));
  for (const auto& item : event["data"].items())
    std::cout << "  " << printable(item.key()) << "="
              << printable(item.value().is_string() ? item.value().get<std::string>()
                                                    : json_text(item.value()));
  std::cout << '\n';
}

}  // namespace

int show_sessions(const SessionsOptions& options) {
  try {
    std::string directory = options.directory.value_or("");
    if (directory.empty()) directory = default_session_directory();
    if (options.id) {
      for (const auto& event : load_session(directory, *options.id).events)
        if (options.json)
          std::cout << json_text(event) << '\n';
        else
          print_event(event);
    } else {
      for (const auto& id : session_ids(directory))
        if (options.json)
          std::cout << json_text(summary(directory, id)) << '\n';
        else
          print_summary(summary(directory, id));
    }
    std::cout.flush();
    return 0;
  } catch (...) {
    return report_failure(std::current_exception());
  }
}

}  // namespace stockade
