// SPDX-License-Identifier: MIT
#include "framework/report.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "framework/error.hpp"
#include "framework/fields.hpp"
#include "framework/library.hpp"

namespace stockade {

namespace {

std::string join(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : std::string(between)) + word;
  return text;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

FiberNeed need_of(const Fiber& fiber, const std::string& key) {
  const Registry& registry = fiber.registry();
  const Realm realm = fiber.scope()->realm(key);
  if (const auto* entry = registry.service(key, realm, fiber)) {
    FiberNeed need{key, std::string(entry->provider->name()), {}};
    if (registry.available(*entry)) return need;
    const FiberState state = entry->provider->state();
    need.why = state == FiberState::active
                   ? "its provider " + need.provider + " says that it is not available"
                   : "its provider " + need.provider + " is " + enum_name(state);
    return need;
  }
  std::string apart;
  for (const Fiber* other : registry.fibers()) {
    if (!contains(other->definition().provides, key) && !contains(other->provides(), key)) continue;
    std::string name(other->name());
    if (other->scope()->realm(key) != realm) {
      apart = std::move(name);
      continue;
    }
    std::string why = name + ", which provides it, is " + enum_name(other->state());
    return {key, std::move(name), std::move(why)};
  }
  if (!apart.empty()) return {key, {}, apart + " provides it, but is isolated from here"};
  return {key, {}, "nothing provides it"};
}

void walk(const FiberReport& report, const std::function<void(const FiberReport&)>& visit) {
  visit(report);
  for (const auto& child : report.children) walk(child, visit);
}

}  // namespace

FiberReport report_of(const Fiber& fiber) {
  FiberReport report;
  report.name = fiber.name();
  report.state = fiber.state();
  if (fiber.definition().library) report.file = fiber.definition().library->file;
  report.provides = fiber.provides();
  for (const auto& key : fiber.inject()) report.needs.push_back(need_of(fiber, key));
  if (fiber.state() == FiberState::failed) report.error = describe(fiber.error());
  for (const auto& child : fiber.children()) report.children.push_back(report_of(*child));
  return report;
}

std::vector<std::vector<std::string>> waiting_rings(const FiberReport& root) {
  std::map<std::string, std::vector<std::string>> waits;
  walk(root, [&](const FiberReport& report) {
    for (const auto& need : report.needs)
      if (!need.why.empty() && !need.provider.empty()) waits[report.name].push_back(need.provider);
  });
  std::vector<std::vector<std::string>> rings;
  std::vector<std::string> known;  // in a ring that was found, or leading to none
  std::vector<std::string> way;
  std::function<void(const std::string&)> follow = [&](const std::string& name) {
    auto met = std::find(way.begin(), way.end(), name);
    if (met != way.end()) {
      rings.emplace_back(met, way.end());
      return;
    }
    if (contains(known, name)) return;
    way.push_back(name);
    for (const auto& next : waits[name]) follow(next);
    way.pop_back();
    known.push_back(name);
  };
  std::vector<std::string> names;
  for (const auto& [name, providers] : waits) names.push_back(name);
  for (const auto& name : names) follow(name);
  return rings;
}

std::string report_text(const FiberReport& root) {
  std::string text;
  std::function<void(const FiberReport&, const std::string&)> print =
      [&](const FiberReport& report, const std::string& indent) {
        std::vector<std::string> keys;
        for (const auto& need : report.needs) keys.push_back(need.key);
        text += indent + report.name + "  " + enum_name(report.state);
        if (!report.provides.empty()) text += "  provides " + join(report.provides, ", ");
        if (!keys.empty()) text += "  needs " + join(keys, ", ");
        if (!report.error.empty()) text += "  " + report.error;
        text += '\n';
        for (const auto& need : report.needs)
          if (!need.why.empty())
            text += indent + "    waits for " + need.key + ": " + need.why + '\n';
        for (const auto& child : report.children) print(child, indent + "  ");
      };
  print(root, "");
  for (const auto& ring : waiting_rings(root))
    text += "a ring: " + join(ring, " waits for ") + " waits for " + ring.front() + '\n';
  return text;
}

nlohmann::ordered_json report_json(const FiberReport& root) {
  std::function<nlohmann::ordered_json(const FiberReport&)> convert =
      [&](const FiberReport& report) {
        nlohmann::ordered_json out = {{"name", report.name}, {"state", enum_name(report.state)}};
        if (!report.file.empty()) out["library"] = report.file;
        out["provides"] = report.provides;
        out["needs"] = nlohmann::ordered_json::array();
        for (const auto& need : report.needs) {
          nlohmann::ordered_json each = {{"service", need.key}, {"available", need.why.empty()}};
          if (!need.provider.empty()) each["provider"] = need.provider;
          if (!need.why.empty()) each["waits"] = need.why;
          out["needs"].push_back(std::move(each));
        }
        if (!report.error.empty()) out["error"] = report.error;
        if (!report.children.empty()) out["children"] = nlohmann::ordered_json::array();
        for (const auto& child : report.children) out["children"].push_back(convert(child));
        return out;
      };
  auto out = convert(root);
  if (auto rings = waiting_rings(root); !rings.empty()) out["rings"] = rings;
  return out;
}

std::string report_mermaid(const FiberReport& root) {
  auto quoted = [](const std::string& words) {
    std::string out;
    for (char c : words) out += c == '"' ? std::string("#quot;") : std::string(1, c);
    return '"' + out + '"';
  };
  std::map<std::string, std::string> nodes;
  std::string text = "flowchart LR\n";
  auto node = [&](const std::string& name, const std::string& label) {
    auto [found, added] = nodes.try_emplace(name, "n" + std::to_string(nodes.size()));
    if (added) text += "  " + found->second + "[" + quoted(label) + "]\n";
    return found->second;
  };
  walk(root, [&](const FiberReport& report) {
    node(report.name, report.name + "<br>" + enum_name(report.state));
  });
  walk(root, [&](const FiberReport& report) {
    const std::string user = node(report.name, report.name);
    for (const auto& child : report.children)
      text += "  " + user + " --- " + node(child.name, child.name) + "\n";
    for (const auto& need : report.needs) {
      const std::string provider = need.provider.empty()
                                       ? node("?" + need.key, need.key + "<br>missing")
                                       : node(need.provider, need.provider);
      text += "  " + provider + (need.why.empty() ? " -->|" : " -.->|") + quoted(need.key) + "| " +
              user + "\n";
    }
  });
  return text;
}

}  // namespace stockade
