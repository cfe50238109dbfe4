// SPDX-License-Identifier: MIT
// Applies the config file anew when it changes, and puts a rebuilt plugin in the place of the
// running one. Whatever does not work leaves what runs as it is, and the log says why.
#include "framework/plugin.hpp"

#include <map>
#include <memory>
#include <set>

#include "framework/error.hpp"
#include "framework/loader.hpp"
#include "framework/watch.hpp"
#include "plugins/hot-reload/config_source.hpp"

namespace stockade {
namespace {

struct HotReloadConfig {
  bool config = true;                       // watch the config file
  bool plugins = true;                      // watch the files of the plugins that it names
  std::chrono::milliseconds quiet_ms{200};  // without a write, before a file is taken
};

std::set<std::string> plugin_ids(const std::vector<LoaderEntry>& entries) {
  std::set<std::string> ids;
  for (const auto& entry : entries) {
    if (entry.disabled) continue;
    if (entry.group)
      ids.merge(plugin_ids(*entry.group));
    else
      ids.insert(entry.id.empty() ? entry.plugin : entry.id);
  }
  return ids;
}

class HotReload {
 public:
  HotReload(Context context, const HotReloadConfig& config)
      : context_(std::move(context)),
        loader_(context_.get<Loader>()),
        quiet_(config.quiet_ms),
        changes_(context_.loop(), [log = context_.log()](std::exception_ptr error) {
          log.error("a change was not carried out: " + describe(error));
        }) {
    if (config.plugins) watch_plugins();
    plugins_ = config.plugins;
    source_ = config.config ? context_.find<ConfigSource>() : nullptr;
    if (source_)
      config_file_.emplace(context_.loop(), source_->path(), quiet_,
                           [this] { changes_.start(apply_config()); });
  }

 private:
  Task<> apply_config() {
    std::string failure;
    try {
      auto applying = loader_->apply(source_->read(), source_->path());
      co_await applying;
      if (plugins_) watch_plugins();
    } catch (...) {
      failure = describe(std::current_exception());
    }
    if (failure.empty())
      context_.log().info("applied the changed config file " + source_->path());
    else
      context_.log().error("kept the running config: " + failure);
  }

  Task<> reload(std::string file) {
    for (const auto& id : plugin_ids(loader_->config().plugins)) {
      if (loader_->library_file(id) != file) continue;
      std::string failure;
      SwapReport report;
      try {
        auto reloading = loader_->reload(id);
        report = co_await reloading;
      } catch (...) {
        failure = describe(std::current_exception());
      }
      if (failure.empty())
        context_.log().info("reloaded \"" + id + "\"; " + report.library);
      else
        context_.log().error("kept the running \"" + id + "\": " + failure);
    }
  }

  void watch_plugins() {
    std::set<std::string> files;
    for (const auto& id : plugin_ids(loader_->config().plugins))
      if (std::string file = loader_->library_file(id); !file.empty()) files.insert(file);
    for (auto each = watches_.begin(); each != watches_.end();)
      each = files.contains(each->first) ? std::next(each) : watches_.erase(each);
    for (const auto& file : files)
      if (!watches_.contains(file))
        watches_[file] = std::make_unique<FileWatch>(
            context_.loop(), file, quiet_, [this, file] { changes_.start(reload(file)); });
  }

  Context context_;
  std::shared_ptr<Loader> loader_;
  std::chrono::milliseconds quiet_;
  bool plugins_ = false;
  std::shared_ptr<ConfigSource> source_;  // null: the config is not watched
  std::optional<FileWatch> config_file_;
  std::map<std::string, std::unique_ptr<FileWatch>> watches_;  // by file
  TaskScope changes_;                                          // last: its tasks use the rest
};

Task<> apply(Context context, HotReloadConfig config) {
  auto running = std::make_shared<HotReload>(context, config);
  context.effect("watch", [running]() mutable { running.reset(); });
  co_return;
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("hot-reload", ({"loader/1", "loader:settled/1"}), stockade::apply)
