// SPDX-License-Identifier: MIT
#include "sandbox-local/seatbelt.hpp"

#include "framework/error.hpp"
#include "sandbox/roots.hpp"

namespace stockade {

namespace {

std::string quoted(const std::string& root) {
  std::string text = "\"";
  for (char c : root) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      std::string shown = root.substr(0, root.find('\0'));
      throw Error("WORKSPACE_REFUSED",
                  "the workspace \"" + shown +
                      "\" is refused: a control character in its path cannot be written in a "
                      "seatbelt profile; rename it; nothing was run",
                  root);
    }
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

}  // namespace

std::string seatbelt_profile(const std::vector<std::string>& roots) {
  std::string profile =
      "(version 1) (allow default) (deny file-write*) (allow file-write* (literal \"/dev/null\"))";
  if (roots.empty()) return profile;
  profile += " (allow file-write*";
  for (const auto& root : roots) profile += " (subpath " + quoted(root) + ")";
  return profile + ")";
}

ConfinedArgv confine_seatbelt(const BackendHost& host, const ConfineRequest& request) {
  std::vector<std::string> roots;
  if (writes_workspace(request.policy)) {
    roots = {request.policy.workspace_root};
    // Seatbelt judges the path that the kernel ends up with: there /tmp is /private/tmp.
    for (const std::string& area : host.temporary_areas) roots.push_back(area);
  }
  ConfinedArgv confined;
  confined.argv = {host.sandbox_exec, "-p", seatbelt_profile(roots), "--"};
  confined.argv.insert(confined.argv.end(), request.argv.begin(), request.argv.end());
  confined.backend = "seatbelt";
  confined.enforcement = SandboxEnforcement::full;
  confined.denial_signatures = {"operation not permitted"};
  confined.runner_failure_rules = {{std::nullopt, {"sandbox-exec: "}, {}}};
  return confined;
}

}  // namespace stockade
