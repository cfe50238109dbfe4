// SPDX-License-Identifier: MIT
// The loader turns the entries of a config into fibers. Every change is a transaction: libraries
// are opened and configs checked before any body runs, successors load beside what they replace,
// and when one fails, nothing has changed. Changes are carried out one after the other.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "framework/api.hpp"
#include "framework/config.hpp"
#include "framework/context.hpp"
#include "framework/task.hpp"

namespace stockade {

// One row of `plugins`: a plugin, or a group of rows.
struct LoaderEntry {
  std::string id;         // unique in the whole config; absent: the plugin's name
  std::string plugin;     // a name in the plugin directory, or an absolute path to a file
  nlohmann::json config;  // the plugin's own
  bool disabled = false;  // of a group: all that is in it
  // Services of its own: `true`, or a label that it shares with all rows that give an equal one.
  std::map<std::string, std::variant<bool, std::string>> isolate{};
  std::optional<std::vector<LoaderEntry>> group{};
};

struct LoaderConfig {
  std::vector<LoaderEntry> plugins;
};

// A config file's text, without its `$schema`. Throws Error `CONFIG_INVALID`, naming `path`.
STOCKADE_API LoaderConfig read_loader_config(std::string_view text, const std::string& path);

struct SwapReport {
  bool unmapped = false;  // the old library is proven gone from the process
  std::string library;    // what became of it: gone, or still mapped and why
};

class STOCKADE_API Loader {
 public:
  static constexpr std::string_view service = "loader/1";
  // Available once a first config has been applied.
  static constexpr std::string_view settled_service = "loader:settled/1";

  // Plugins that are given by name are `<plugin_directory>/<name>.so`.
  Loader(Context context, std::string plugin_directory);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Provides the loader itself, for as long as it lives.
  void provide();

  // Makes `config` the running one: rows that did not change are left alone, others get a
  // successor, come or go. Ends when every fiber is settled; one that waits for a service is no
  // failure. Throws an Error that names the entry and the file or the key, with everything as it
  // was before: `PLUGIN_UNUSABLE`, `CONFIG_INVALID`, or the code of the body's own error; an
  // AggregateError `ENTRIES_FAILED` for several. `source` names the config in messages. Dropping
  // the task drops the answer, never the change; so with all that follow.
  Task<> apply(LoaderConfig config, std::string source);

  // Changes of single rows. `parent` is a group, "" the whole; without an id the row gets one of 8
  // hexadecimal digits, which is returned. Throw Error `ENTRY_UNKNOWN` or `ENTRY_NO_GROUP`,
  // besides.
  Task<std::string> create(LoaderEntry entry, std::string parent = {});
  Task<> update(std::string id, std::function<void(LoaderEntry&)> edit);
  Task<> remove(std::string id);
  Task<> move(std::string id, std::string parent, std::size_t position);

  // Puts the rebuilt library of a row, or another plugin (with its config where one is given), in
  // the place of the running one. Calls in flight end on the provider that they began with; calls
  // that begin later use the new one; none fails for it. One that cannot be opened, throws while it
  // loads or would wait for a service leaves the old one serving.
  Task<SwapReport> reload(std::string id);
  Task<SwapReport> replace(std::string id, std::string plugin,
                           std::optional<nlohmann::json> config = std::nullopt);

  // Ends when no fiber of a row is busy; throws the error of one that FAILED, or an AggregateError
  // `FIBERS_FAILED` of several.
  Task<> settled() const;

  // In the order of the config.
  std::vector<std::shared_ptr<Fiber>> fibers() const;
  // Null where the row is unknown, a group, or does not run.
  std::shared_ptr<Fiber> fiber(std::string_view id) const;
  // The file that a row's plugin comes from; "" for an unknown row.
  std::string library_file(std::string_view id) const;
  const LoaderConfig& config() const noexcept { return config_; }
  // The same as JSON: id and plugin first, the config last, defaults left out.
  nlohmann::ordered_json to_json() const;
  // Called after each change that did not come from apply(), for whoever keeps the config.
  void on_change(std::function<void()> callback) { on_change_ = std::move(callback); }

 private:
  struct Row;
  struct Running;
  struct Change;
  struct Outcome;

  Task<SwapReport> submit(std::shared_ptr<Change> change);
  Task<> carry_out(std::shared_ptr<Change> change, std::shared_ptr<Outcome> outcome);
  Task<> transition(std::shared_ptr<Change> change);
  std::vector<Row> rows_of(LoaderConfig& config, std::vector<ConfigIssue>& issues) const;
  std::string file_of(const std::string& plugin) const;
  PluginDefinition open(const Row& row) const;
  std::shared_ptr<const Scope> scope_of(const Row& row) const;
  void take_updated(const Fiber& fiber);

  Context context_;
  std::string plugin_directory_;
  LoaderConfig config_;
  std::vector<Running> running_;
  std::function<void()> on_change_;
  std::shared_ptr<detail::Listener> listener_;
  std::optional<Completion<>> changing_;
  bool settled_once_ = false;
  TaskScope changes_;  // last: its tasks use the rest
};

}  // namespace stockade
