// SPDX-License-Identifier: MIT
// Context: a cheap handle on a scope of one fiber, and all that a plugin sees of the framework.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "framework/api.hpp"
#include "framework/fiber.hpp"
#include "framework/log.hpp"
#include "framework/loop.hpp"
#include "framework/registry.hpp"

namespace stockade {

// Undoes one effect, once; copies share it. Ignoring it leaves the undo to the fiber.
class STOCKADE_API Disposer {
 public:
  Disposer(std::shared_ptr<Fiber> fiber, std::uint64_t id) : fiber_(std::move(fiber)), id_(id) {}
  Task<> dispose() const;  // nothing when the effect is already undone

 private:
  std::shared_ptr<Fiber> fiber_;
  std::uint64_t id_;
};

// A service interface T names itself: `static constexpr std::string_view service = "sandbox/1"`, a
// string with a version and never a typeid, which is no identity across shared objects.
// An event E likewise: `static constexpr std::string_view event = "…/1"`.
class STOCKADE_API Context {
 public:
  // A new tree. The root fiber is ACTIVE and lives as long as a context or fiber refers to it.
  static Context root(Loop& loop, Log log);

  Context(std::shared_ptr<Fiber> fiber, std::shared_ptr<const Scope> scope);

  Loop& loop() const;
  Log log() const;  // named after the fiber
  const std::shared_ptr<Fiber>& fiber() const noexcept { return fiber_; }

  // Mounts a child. Returns before its body runs; `fiber->settled()` tells how that went.
  std::shared_ptr<Fiber> plugin(PluginDefinition definition, nlohmann::json config,
                                std::string name = {}) const;

  // Throws Error `SERVICE_TAKEN` when this scope has a provider already.
  template <class T>
  Disposer provide(std::type_identity_t<std::shared_ptr<T>> service) const {
    return provide_erased(T::service, std::move(service));
  }
  // For a family of services with one interface, such as `tool:NAME/1`.
  template <class T>
  Disposer provide_as(std::string_view key,
                      std::type_identity_t<std::shared_ptr<T>> service) const {
    return provide_erased(key, std::move(service));
  }

  // What is returned keeps the provider and its code alive, so that a call in flight ends on the
  // provider that it began with. Throws Error `SERVICE_NOT_DECLARED` when neither this fiber nor
  // one above injects T, `SERVICE_INACTIVE` when it does but no provider is ACTIVE.
  template <class T>
  std::shared_ptr<T> get() const {
    return std::static_pointer_cast<T>(get_erased(T::service));
  }
  // The same for an optional service: null when it is not there, and no declaration needed.
  template <class T>
  std::shared_ptr<T> find() const {
    return std::static_pointer_cast<T>(find_erased(T::service));
  }
  template <class T>
  std::shared_ptr<T> find_as(std::string_view key) const {
    return std::static_pointer_cast<T>(find_erased(key));
  }

  // A context in which `key` is a service of its own, provided and seen only below it.
  Context isolate(std::string_view key) const;

  // Registers what undoes a side effect. Throws Error `INACTIVE_EFFECT`.
  Disposer effect(std::string label, Undo undo) const;
  Disposer effect(std::string label, std::function<void()> undo) const;

  template <class E, class F>
  Disposer on(F listener, bool prepend = false) const {
    return listen(E::event, erase<E>(std::move(listener)), prepend, false);
  }
  template <class E, class F>
  Disposer once(F listener, bool prepend = false) const {
    return listen(E::event, erase<E>(std::move(listener)), prepend, true);
  }
  // An error of a listener reaches the emitter, and later listeners are not called.
  template <class E>
  void emit(const E& event) const {
    fiber_->registry().emit(E::event, &event);
  }

  // Keeps this plugin's code mapped: for what may still run after its fiber was disposed.
  std::shared_ptr<const void> code() const;

 private:
  template <class E, class F>
  static std::function<void(const void*)> erase(F listener) {
    return [listener = std::move(listener)](const void* event) mutable {
      listener(*static_cast<const E*>(event));
    };
  }
  Disposer provide_erased(std::string_view key, std::shared_ptr<void> service) const;
  std::shared_ptr<void> get_erased(std::string_view key) const;
  std::shared_ptr<void> find_erased(std::string_view key) const;
  Disposer listen(std::string_view event, std::function<void(const void*)> callback, bool prepend,
                  bool once) const;

  std::shared_ptr<Fiber> fiber_;
  std::shared_ptr<const Scope> scope_;
};

}  // namespace stockade
