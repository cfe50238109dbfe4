// SPDX-License-Identifier: MIT
#include "sandbox-local/extras.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "framework/error.hpp"
#include "framework/fields.hpp"
#include "sandbox/roots.hpp"

namespace stockade {

namespace {

std::string parent_of(const std::string& path) {
  auto slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Whoever may rename a parent of a protected path could put another one in its place.
void pin_parents(const std::string& path, const std::string& root, std::vector<std::string>& pins) {
  for (std::string at = parent_of(path); at != root && is_within(at, root); at = parent_of(at))
    if (std::find(pins.begin(), pins.end(), at) == pins.end()) pins.push_back(at);
}

}  // namespace

ConfineExtras examine_extras(const SandboxPolicy& policy, const std::string& working_directory,
                             const std::vector<std::string>& protected_from_commands) {
  ConfineExtras found;
  if (!policy.extras) return found;
  const SandboxExtras& extras = *policy.extras;
  found.network = extras.network;
  auto exists = [](const std::string& path, struct stat& info) {
    return stat(path.c_str(), &info) == 0;
  };
  struct stat info {};
  if (writes_workspace(policy)) {
    std::vector<std::string> writable{policy.workspace_root};
    for (const auto& root : extras.writable_roots) {
      check_workspace_root(root, protected_from_commands);
      found.roots.push_back({root, file_identity(root)});
      writable.push_back(root);
    }
    for (const auto& path : extras.protected_paths) {
      if (!exists(path, info)) continue;
      for (const auto& root : writable)
        if (is_within(path, root)) pin_parents(path, root, found.pinned);
      found.protected_paths.push_back(path);
    }
    std::sort(found.pinned.begin(), found.pinned.end(),
              [](const auto& a, const auto& b) { return a.size() < b.size(); });
  }
  for (const auto& path : extras.hidden_paths) {
    if (is_within(working_directory, path) ||
        (writes_workspace(policy) && is_within(policy.workspace_root, path)))
      throw Error("EXTRAS_REFUSED",
                  "the hidden path \"" + path +
                      "\" holds the directory that the command works in; hide less, or choose "
                      "another working directory; nothing was run",
                  path);
    if (!exists(path, info)) continue;
    (S_ISDIR(info.st_mode) ? found.hidden_directories : found.hidden_files).push_back(path);
  }
  return found;
}

std::optional<std::string> beyond(Backend backend, const ConfineExtras& extras) {
  if (backend == Backend::namespace_ || backend == Backend::bwrap) return std::nullopt;
  std::string what;
  auto also = [&](bool wanted, const char* name) {
    if (wanted) what += (what.empty() ? "" : ", ") + std::string(name);
  };
  also(!extras.protected_paths.empty(), "protectedPaths");
  also(!extras.hidden_directories.empty() || !extras.hidden_files.empty(), "hiddenPaths");
  also(!extras.network, "network: false");
  also(backend == Backend::seatbelt && !extras.roots.empty(), "writableRoots");
  if (what.empty()) return std::nullopt;
  return enum_name(backend) + ": it cannot enforce what the policy asks for (" + what +
         "); use the namespace or the bwrap backend";
}

}  // namespace stockade
