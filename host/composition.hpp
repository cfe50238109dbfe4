// SPDX-License-Identifier: MIT
// Which plugins make up the host: an embedded default, or a config file, and what the command line
// changes in it.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/context.hpp"
#include "framework/error.hpp"
#include "framework/loader.hpp"
#include "framework/loop.hpp"

namespace stockade {

// What the built-in compositions can have beside the call path.
inline const std::vector<std::string> kAllPlugins{"approval",  "sessions", "jobs",
                                                  "tool-bash", "script",   "mcp"};

struct CompositionOptions {
  std::optional<std::string> config_file;
  std::optional<std::string> mode;  // of the entry for `sandbox`
  std::optional<std::string>
      workspace;                       // likewise; also the working directory unless `cwd` is given
  std::optional<std::string> cwd;      // of the entry for `bash-sandbox`
  std::optional<std::string> backend;  // of the entry for `sandbox-local`, instead of what it names
  bool keep_spills = false;  // of the entry for `bash-sandbox`: the host ends before its reader
  LogLevel log_level = LogLevel::warn;
  // Of the built-in composition, beside what every call needs. A config file names its own.
  std::vector<std::string> plugins = kAllPlugins;
  bool watch = false;  // add `hot-reload` for the config file, where the file does not name it
};

// Throws Error `CONFIG_INVALID` naming the file or the option.
LoaderConfig compose(const CompositionOptions& options);

// A loop with everything that `compose` names, loaded. Throws what the loader throws.
class Host {
 public:
  explicit Host(const CompositionOptions& options);
  // The same, but goes on after `limit` even when not all plugins have come to rest.
  Host(const CompositionOptions& options, std::chrono::milliseconds limit);
  ~Host();  // disposes every fiber and unloads every plugin
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  Loop& loop() noexcept { return loop_; }
  const Context& context() const noexcept { return context_; }
  const Loader& loader() const noexcept { return loader_; }
  Loader& loader() noexcept { return loader_; }
  bool settled() const noexcept { return settled_; }  // the composition has been applied

  // The service, or Error `SERVICE_UNAVAILABLE` that says which entries wait for what.
  template <class T>
  std::shared_ptr<T> service() const {
    auto found = context_.find<T>();
    if (!found) throw unavailable(T::service);
    return found;
  }

  // Runs the loop until `task` has ended and returns its value or rethrows its error.
  template <class T>
  T run(Task<T> task) {
    std::optional<T> value;
    std::exception_ptr error;
    TaskScope scope(loop_, [&](std::exception_ptr failure) { error = failure; });
    scope.start(store(std::move(task), value));
    loop_.run_until([&] { return value || error; });
    if (error) std::rethrow_exception(error);
    return std::move(*value);
  }

 private:
  template <class T>
  static Task<> store(Task<T> task, std::optional<T>& value) {
    T result = co_await task;
    value.emplace(std::move(result));
  }
  Host(const CompositionOptions& options, std::optional<std::chrono::milliseconds> limit);
  Error unavailable(std::string_view key) const;

  Loop loop_;
  Context context_;
  Loader loader_;
  bool settled_ = false;
};

}  // namespace stockade
