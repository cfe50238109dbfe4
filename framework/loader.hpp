// SPDX-License-Identifier: MIT
// The loader turns the entries of a config into fibers. Applying is a transaction: every library is
// opened and every config checked before any body runs, and when one fails to start nothing stays.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/api.hpp"
#include "framework/context.hpp"
#include "framework/task.hpp"

namespace stockade {

// One row of `plugins`.
struct LoaderEntry {
  std::string id;         // unique; absent: the plugin's name
  std::string plugin;     // a name in the plugin directory, or an absolute path to a file
  nlohmann::json config;  // the plugin's own
  bool disabled = false;
};

struct LoaderConfig {
  std::vector<LoaderEntry> plugins;
};

class STOCKADE_API Loader {
 public:
  // Plugins that are given by name are `<plugin_directory>/<name>.so`.
  Loader(Context context, std::string plugin_directory);

  // Throws an Error that names the entry and the file or the key: `PLUGIN_UNUSABLE`,
  // `CONFIG_INVALID`, or the code of the body's own error. `source` names the config in messages.
  // Ends when every fiber is settled; one that waits for a service is no failure.
  Task<> apply(LoaderConfig config, std::string source);

  const std::vector<std::shared_ptr<Fiber>>& fibers() const noexcept { return fibers_; }

 private:
  Context context_;
  std::string plugin_directory_;
  std::vector<std::shared_ptr<Fiber>> fibers_;
};

}  // namespace stockade
