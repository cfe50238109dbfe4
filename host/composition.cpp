// SPDX-License-Identifier: MIT
#include "host/composition.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "framework/config.hpp"
#include "framework/error.hpp"
#include "framework/fd.hpp"
#include "framework/library.hpp"
#include "plugins/hot-reload/config_source.hpp"

namespace stockade {

namespace {

std::string read_file(const std::string& path) {
  auto invalid = [&](const std::string& why) {
    return Error("CONFIG_INVALID", "cannot read the config file " + path + ": " + why, path);
  };
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) throw invalid(describe_errno(errno));
  struct stat info {};
  if (fstat(fd.get(), &info) == 0 && S_ISDIR(info.st_mode)) throw invalid("it is a directory");
  constexpr std::size_t kMaxConfig = 16U << 20;
  std::string text;
  char chunk[65536];
  for (;;) {
    ssize_t n = read(fd.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw invalid(describe_errno(errno));
    if (n == 0) return text;
    text.append(chunk, static_cast<std::size_t>(n));
    if (text.size() > kMaxConfig) throw invalid("it is larger than 16 MiB");
  }
}

LoaderEntry* find_plugin(std::vector<LoaderEntry>& entries, const std::string& plugin) {
  for (auto& entry : entries) {
    if (entry.plugin == plugin) return &entry;
    if (entry.group)
      if (LoaderEntry* below = find_plugin(*entry.group, plugin)) return below;
  }
  return nullptr;
}

nlohmann::json& plugin_config(LoaderConfig& config, const std::string& plugin, const char* option) {
  if (LoaderEntry* entry = find_plugin(config.plugins, plugin)) {
    if (entry->config.is_null()) entry->config = nlohmann::json::object();
    if (!entry->config.is_object())
      throw Error("CONFIG_INVALID", "the config of the plugin " + plugin + " is not an object",
                  plugin);
    return entry->config;
  }
  throw Error("CONFIG_INVALID",
              std::string(option) + " needs an entry for the plugin \"" + plugin +
                  "\" in the config, and there is none",
              plugin);
}

LoaderConfig default_composition(const std::vector<std::string>& plugins) {
  LoaderConfig config;
  auto add = [&](const std::string& plugin) {
    LoaderEntry entry;
    entry.plugin = plugin;
    config.plugins.push_back(std::move(entry));
  };
  for (const char* base : {"sandbox", "sandbox-local", "bash-sandbox"}) add(base);
  for (const auto& plugin : plugins) add(plugin);
  return config;
}

}  // namespace

LoaderConfig compose(const CompositionOptions& options) {
  auto config = options.config_file
                    ? read_loader_config(read_file(*options.config_file), *options.config_file)
                    : default_composition(options.plugins);
  if (options.mode) plugin_config(config, "sandbox", "--mode")["mode"] = *options.mode;
  if (options.workspace) {
    plugin_config(config, "sandbox", "--workspace")["workspaceRoot"] = *options.workspace;
    if (!options.cwd)
      plugin_config(config, "bash-sandbox", "--workspace")["cwd"] = *options.workspace;
  }
  if (options.cwd) plugin_config(config, "bash-sandbox", "--cwd")["cwd"] = *options.cwd;
  if (options.keep_spills && find_plugin(config.plugins, "bash-sandbox"))
    plugin_config(config, "bash-sandbox", "--json").emplace("keepSpills", true);
  if (options.backend) {
    auto& sandbox = plugin_config(config, "sandbox-local", "--backend");
    sandbox["backends"] = {*options.backend};
    sandbox.erase("runnerCommand");
    sandbox.erase("runnerFailureSignatures");
  }
  if (options.watch && !find_plugin(config.plugins, "hot-reload")) {
    LoaderEntry entry;
    entry.plugin = "hot-reload";
    entry.config = {{"plugins", false}};
    config.plugins.push_back(std::move(entry));
  }
  return config;
}

namespace {

std::string source_of(const CompositionOptions& options) {
  return options.config_file.value_or("the default composition");
}

Task<> apply_and_note(Loader* loader, LoaderConfig config, std::string source, bool* done) {
  auto applying = loader->apply(std::move(config), std::move(source));
  co_await applying;
  *done = true;
}

class FileSource final : public ConfigSource {
 public:
  explicit FileSource(CompositionOptions options) : options_(std::move(options)) {}
  std::string path() const override { return *options_.config_file; }
  LoaderConfig read() const override { return compose(options_); }

 private:
  CompositionOptions options_;
};

}  // namespace

Host::Host(const CompositionOptions& options) : Host(options, std::nullopt) {}

Host::Host(const CompositionOptions& options, std::chrono::milliseconds limit)
    : Host(options, std::optional(limit)) {}

Host::Host(const CompositionOptions& options, std::optional<std::chrono::milliseconds> limit)
    : context_(Context::root(loop_, Log::standard_error(options.log_level))),
      loader_(context_, installation_directory() + "/plugins") {
  LoaderConfig config = compose(options);
  if (options.config_file) context_.provide<ConfigSource>(std::make_shared<FileSource>(options));
  loader_.provide();
  bool late = false;
  std::exception_ptr error;
  Timer timer(loop_);
  if (limit) timer.start(*limit, [&late] { late = true; });
  {
    TaskScope applying(loop_, [&error](std::exception_ptr failure) { error = failure; });
    applying.start(apply_and_note(&loader_, std::move(config), source_of(options), &settled_));
    loop_.run_until([&] { return settled_ || error || late; });
  }
  if (error) std::rethrow_exception(error);
}

Host::~Host() {
  Completion<> disposed = context_.fiber()->dispose();
  try {
    loop_.run_until([&] { return disposed.settled(); });
  } catch (const Error& error) {
    context_.log().error(std::string("a plugin did not unload: ") + error.what());
  }
}

Error Host::unavailable(std::string_view key) const {
  std::string text = "the service \"" + std::string(key) + "\" is not available";
  for (const auto& fiber : loader_.fibers())
    for (const auto& wanted : fiber->waiting_for())
      text += "; the entry \"" + std::string(fiber->name()) + "\" waits for \"" + wanted + "\"";
  return Error("SERVICE_UNAVAILABLE",
               text + "; add the plugin that provides it to the config, or enable it",
               std::string(key));
}

}  // namespace stockade
