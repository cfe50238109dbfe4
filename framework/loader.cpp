// SPDX-License-Identifier: MIT
#include "framework/loader.hpp"

#include <dirent.h>

#include <algorithm>
#include <set>

#include "framework/config.hpp"
#include "framework/error.hpp"
#include "framework/library.hpp"

namespace stockade {

namespace {

struct Prepared {
  std::string id;
  PluginDefinition definition;
  nlohmann::json config;
};

std::vector<std::string> plugins_in(const std::string& directory) {
  std::vector<std::string> names;
  if (DIR* dir = opendir(directory.c_str())) {
    while (const dirent* entry = readdir(dir)) {
      std::string name = entry->d_name;
      if (name.size() > 3 && name.ends_with(".so"))
        names.push_back(name.substr(0, name.size() - 3));
    }
    closedir(dir);
  }
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void fail(std::string_view stage, const Prepared& entry, std::string code,
                       const std::string& why) {
  throw Error(std::move(code),
              "failed to " + std::string(stage) + " loader entry " + entry.id + " (" +
                  entry.definition.name + "): " + why,
              entry.id);
}

}  // namespace

Loader::Loader(Context context, std::string plugin_directory)
    : context_(std::move(context)), plugin_directory_(std::move(plugin_directory)) {}

Task<> Loader::apply(LoaderConfig config, std::string source) {
  std::set<std::string> ids;
  std::vector<Prepared> prepared;
  std::vector<ConfigIssue> issues;
  for (std::size_t i = 0; i < config.plugins.size(); ++i) {
    LoaderEntry& entry = config.plugins[i];
    std::string path = "$.plugins[" + std::to_string(i) + "]";
    if (entry.plugin.empty()) {
      issues.push_back({path + ".plugin", "expected the name of a plugin, found nothing"});
      continue;
    }
    if (entry.id.empty()) entry.id = entry.plugin;
    if (!ids.insert(entry.id).second)
      issues.push_back({path + ".id", "duplicate loader entry id: " + entry.id});
    if (entry.disabled) continue;

    bool by_path = entry.plugin.front() == '/';
    std::string file = by_path ? entry.plugin : plugin_directory_ + "/" + entry.plugin + ".so";
    Prepared next{entry.id, {}, std::move(entry.config)};
    next.definition.name = entry.plugin;
    // Texts are taken while the library is mapped: what its code throws may be of a type of its
    // own.
    std::string failure;
    std::string code;
    try {
      next.definition = open_plugin(context_.loop(), file);
    } catch (...) {
      code = code_of(std::current_exception(), "PLUGIN_FAILED");
      failure = describe(std::current_exception());
    }
    if (!code.empty()) {
      auto known = plugins_in(plugin_directory_);
      bool misspelt =
          !by_path && std::find(known.begin(), known.end(), entry.plugin) == known.end();
      fail("import", next, code, failure + (misspelt ? suggestion(entry.plugin, known) : ""));
    }
    try {
      next.definition.check_config(next.config);
    } catch (...) {
      issues.push_back({path + ".config", describe(std::current_exception())});
    }
    prepared.push_back(std::move(next));
  }
  throw_config_issues(source, issues);

  // All are mounted before any is awaited: bodies run on later turns, in whatever order their
  // services allow.
  std::vector<std::shared_ptr<Fiber>> started;
  for (auto& entry : prepared) {
    started.push_back(context_.plugin(entry.definition, entry.config, entry.id));
  }
  std::exception_ptr failure;
  std::size_t failed = 0;
  // One that settled early may begin to load again, when its service comes: until none is busy.
  for (bool again = true; again && !failure;) {
    again = false;
    for (std::size_t i = 0; i < started.size(); ++i) {
      if (started[i]->busy()) again = true;
      std::exception_ptr error;
      try {
        auto settled = started[i]->settled();
        co_await settled;
      } catch (...) {
        error = std::current_exception();
      }
      if (error && !failure) {
        failure = error;
        failed = i;
      }
    }
  }
  if (!failure) {
    fibers_ = std::move(started);
    co_return;
  }
  for (auto fiber = started.rbegin(); fiber != started.rend(); ++fiber) {
    Completion<> disposed = (*fiber)->dispose();
    co_await disposed;
  }
  fail("apply", prepared[failed], code_of(failure, "PLUGIN_FAILED"), describe(failure));
}

}  // namespace stockade
