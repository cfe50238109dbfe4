// SPDX-License-Identifier: MIT
// A fiber is one mounted plugin. It loads when all that it injects is there, unloads when one goes,
// and loads again when one is replaced; a load or unload in progress is never interrupted. Every
// side effect of its body is an effect with an undo, run in strict reverse when it unloads.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/api.hpp"
#include "framework/completion.hpp"
#include "framework/effects.hpp"
#include "framework/registry.hpp"
#include "framework/task.hpp"

namespace stockade {

class Context;
struct LibraryStatus;

// The numbers are visible in diagnostics and follow Cordis.
enum class FiberState {
  pending = 0,
  loading = 1,
  active = 2,
  failed = 3,
  disposed = 4,
  unloading = 5
};

// What a plugin is before it is mounted. `code` keeps the shared object mapped that the functions
// live in; null for code of the host.
struct PluginDefinition {
  // Declared first, destroyed last: the functions below are code of this library.
  std::shared_ptr<const void> code;
  std::shared_ptr<const LibraryStatus> library;  // tells what became of it; null for host code
  std::string name;
  std::vector<std::string> inject;    // service keys, all required
  std::vector<std::string> provides;  // what it says it provides; only for reports
  // What it asks of a service that it injects (Context::service_config), by key.
  std::map<std::string, std::shared_ptr<const nlohmann::json>> inject_config;
  // Throws Error `CONFIG_INVALID`; called before the body, and by the loader before anything
  // starts.
  std::function<void(const nlohmann::json& config)> check_config;
  std::function<Task<>(Context, const nlohmann::json& config)> apply;
  // The JSON Schema of its config; empty where it has none.
  std::function<nlohmann::ordered_json()> schema;
};

// `scope` with what the plugin asks of its services.
STOCKADE_API std::shared_ptr<const Scope> scope_for(std::shared_ptr<const Scope> scope,
                                                    const PluginDefinition& definition);

enum class Save { no, yes };

class STOCKADE_API Fiber : public std::enable_shared_from_this<Fiber> {
 public:
  Fiber(std::shared_ptr<Registry> registry, std::shared_ptr<Fiber> parent,
        std::shared_ptr<const Scope> scope, PluginDefinition definition,
        std::shared_ptr<const nlohmann::json> config, std::string name);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  std::string_view name() const noexcept { return name_; }
  FiberState state() const noexcept { return state_; }
  std::optional<std::uint64_t> uid() const noexcept { return uid_; }  // 0: the root; none: disposed
  bool root() const noexcept { return root_; }
  bool busy() const noexcept { return driving_; }  // a load or unload runs or is about to
  std::exception_ptr error() const noexcept { return error_; }
  const PluginDefinition& definition() const noexcept { return definition_; }
  const nlohmann::json& config() const noexcept { return *config_; }
  const std::vector<std::string>& inject() const noexcept { return definition_.inject; }
  std::vector<std::string> provides() const;
  std::vector<std::string> waiting_for() const;  // injected, but not available
  std::vector<std::string> effects() const;      // labels in order of registration
  std::vector<EffectInfo> effect_tree() const { return effects_.list(); }
  std::vector<std::shared_ptr<Fiber>> children() const;
  std::shared_ptr<Fiber> parent() const noexcept { return parent_.lock(); }
  bool is_or_is_below(const Fiber& other) const noexcept;

  // Ends when no load or unload runs; rethrows the error of a FAILED fiber. A fiber that waits for
  // a service is settled.
  Task<> settled();
  Task<> quiet();  // the same without the error
  // Gives it another config: an ACTIVE fiber is unloaded and loaded again, a FAILED one loaded, one
  // that waits takes it when it loads. Begins at once; what is returned is settled(). Throws Error
  // `CONFIG_INVALID` and changes nothing where the check refuses the config, `INACTIVE_EFFECT` for
  // a fiber that is disposed. A listener of FiberUpdating that does not go on vetoes. `save` is
  // handed on to those who keep configs, once the new one is ACTIVE.
  Task<> update(nlohmann::json config, Save save = Save::yes);
  // Unloads and loads again; a FAILED fiber loads.
  Task<> restart();
  // Begins at once and always completes; the errors of undos are logged. A second call is a no-op
  // that is settled at once.
  Completion<> dispose();
  // Settles when a disposal that has begun is complete.
  Completion<> disposal();
  // One more service that it needs; only before its first load (FiberMounted).
  void require(std::string key);

  // The rest is for Context, Registry, Swap and Loader.
  Registry& registry() const noexcept { return *registry_; }
  const std::shared_ptr<Registry>& shared_registry() const noexcept { return registry_; }
  const std::shared_ptr<const Scope>& scope() const noexcept { return scope_; }
  const std::shared_ptr<const void>& code() const noexcept { return definition_.code; }
  EffectList& effect_list() noexcept { return effects_; }
  std::shared_ptr<EffectList> home() const noexcept { return home_.lock(); }
  bool declares(std::string_view key) const noexcept;  // here or in a fiber above
  bool needs(std::string_view key, Realm realm) const;
  void refresh();
  // Mounted as an effect of its parent, which it removes when it is disposed.
  void mount(const std::shared_ptr<EffectList>& list);
  // Throws Error `INACTIVE_EFFECT` when the fiber is disposed or unloading.
  void require_usable() const;
  const Staging* staging() const noexcept;  // its own or that of a fiber above
  void stage(const Staging* staging) noexcept { staging_ = staging; }
  // Its successor has its services and its place; it takes no notice of anything but disposal.
  void retire(const Fiber* successor);

 private:
  Task<> drive(std::shared_ptr<Fiber> self);
  Task<> load();
  bool ready() const;
  bool retired() const noexcept;
  std::vector<std::uint64_t> epoch() const;
  void set_state(FiberState state);

  std::shared_ptr<Registry> registry_;
  std::weak_ptr<Fiber> parent_;  // owns this one as an effect, until that is undone
  bool root_;
  std::optional<std::uint64_t> uid_;
  std::shared_ptr<const Scope> scope_;
  PluginDefinition definition_;
  std::shared_ptr<const nlohmann::json> config_;
  std::string name_;
  FiberState state_ = FiberState::pending;
  std::exception_ptr error_;
  EffectList effects_;
  std::weak_ptr<EffectList> home_;  // of the parent
  std::weak_ptr<Effect> self_;      // in it
  // What the last load saw: the config, how often a restart was asked for, and the providers.
  std::shared_ptr<const nlohmann::json> loaded_config_;
  std::uint64_t restarts_ = 0;
  std::uint64_t loaded_restarts_ = 0;
  std::vector<std::uint64_t> loaded_epoch_;
  Save save_ = Save::no;
  const Staging* staging_ = nullptr;
  bool retired_ = false;
  bool disposing_ = false;
  bool driving_ = false;
  std::optional<Completion<>> idle_;      // while driving
  std::optional<Completion<>> disposed_;  // once disposal began
};

// Every step of a life.
struct FiberStatus {
  static constexpr std::string_view event = "internal/status";
  Fiber& fiber;
  FiberState from;
  FiberState to;
};
// A waterfall around Fiber::update.
struct FiberUpdating {
  static constexpr std::string_view event = "internal/update";
  Fiber& fiber;
  const nlohmann::json& config;
};
// A config that was given by Fiber::update is in use.
struct FiberUpdated {
  static constexpr std::string_view event = "internal/updated";
  Fiber& fiber;
  Save save;
};

}  // namespace stockade
