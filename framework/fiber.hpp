// SPDX-License-Identifier: MIT
// A fiber is one mounted plugin. It loads when all that it injects is there, unloads when one goes,
// and loads again when one is replaced; a load or unload in progress is never interrupted. Every
// side effect of its body is an effect with an undo, run in strict reverse when it unloads.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/api.hpp"
#include "framework/completion.hpp"
#include "framework/registry.hpp"
#include "framework/task.hpp"

namespace stockade {

class Context;

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
  std::string name;
  std::vector<std::string> inject;  // service keys, all required
  // Throws Error `CONFIG_INVALID`; called before the body, and by the loader before anything
  // starts.
  std::function<void(const nlohmann::json& config)> check_config;
  std::function<Task<>(Context, const nlohmann::json& config)> apply;
};

using Undo = std::function<Task<>()>;

class STOCKADE_API Fiber : public std::enable_shared_from_this<Fiber> {
 public:
  struct Effect {
    std::uint64_t id = 0;
    std::string label;
    Undo undo;
    std::shared_ptr<Fiber> child;  // for `ctx.plugin()`
  };

  Fiber(std::shared_ptr<Registry> registry, std::shared_ptr<Fiber> parent,
        std::shared_ptr<const Scope> scope, PluginDefinition definition,
        std::shared_ptr<const nlohmann::json> config, std::string name);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  std::string_view name() const noexcept { return name_; }
  FiberState state() const noexcept { return state_; }
  bool root() const noexcept { return root_; }
  bool busy() const noexcept { return driving_; }  // a load or unload runs or is about to
  std::exception_ptr error() const noexcept { return error_; }
  const std::vector<std::string>& inject() const noexcept { return definition_.inject; }
  std::vector<std::string> provides() const;
  std::vector<std::string> waiting_for() const;  // injected, but not available
  std::vector<std::string> effects() const;      // labels in order of registration
  std::vector<std::shared_ptr<Fiber>> children() const;

  // Ends when no load or unload runs; rethrows the error of a FAILED fiber. A fiber that waits for
  // a service is settled.
  Task<> settled();
  // Begins at once and always completes; the errors of undos are logged. A second call is a no-op
  // that is settled at once.
  Completion<> dispose();
  // Settles when a disposal that has begun is complete.
  Completion<> disposal();

  // The rest is for Context, Registry and Loader.
  Registry& registry() noexcept { return *registry_; }
  const std::shared_ptr<Registry>& shared_registry() const noexcept { return registry_; }
  const std::shared_ptr<const Scope>& scope() const noexcept { return scope_; }
  const std::shared_ptr<const void>& code() const noexcept { return definition_.code; }
  bool declares(std::string_view key) const;  // here or in a fiber above
  bool needs(std::string_view key, Realm realm) const;
  void refresh();
  // Throws Error `INACTIVE_EFFECT` when the fiber is disposed or unloading.
  std::uint64_t add_effect(std::string label, Undo undo, std::shared_ptr<Fiber> child = nullptr);
  // Runs the undo now and awaits it; nothing when it already ran.
  Task<> undo_effect(std::uint64_t id);
  void forget_effect(std::uint64_t id);  // for one that is over without an undo
  void require_usable() const;

 private:
  Task<> drive(std::shared_ptr<Fiber> self);
  Task<> load();
  Task<> unload();
  bool ready() const;
  std::vector<std::uint64_t> epoch() const;
  void set_state(FiberState state);

  std::shared_ptr<Registry> registry_;
  std::weak_ptr<Fiber> parent_;  // owns this one as an effect, until that is undone
  bool root_;
  std::shared_ptr<const Scope> scope_;
  PluginDefinition definition_;
  std::shared_ptr<const nlohmann::json> config_;
  std::string name_;
  FiberState state_ = FiberState::pending;
  std::exception_ptr error_;
  std::vector<Effect> effects_;
  std::vector<std::uint64_t> loaded_epoch_;
  bool disposing_ = false;
  bool driving_ = false;
  std::optional<Completion<>> idle_;      // while driving
  std::optional<Completion<>> disposed_;  // once disposal began
};

}  // namespace stockade
