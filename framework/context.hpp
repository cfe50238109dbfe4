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
  Disposer(std::shared_ptr<Fiber> fiber, std::shared_ptr<EffectList> list,
           std::shared_ptr<Effect> effect)
      : fiber_(std::move(fiber)), list_(std::move(list)), effect_(std::move(effect)) {}
  Task<> dispose() const;  // nothing when the effect is already undone
  // Of an effect whose set-up is asynchronous: ends with it, throwing its error.
  Task<> ready() const;

 private:
  friend class Context;
  std::shared_ptr<Fiber> fiber_;
  std::shared_ptr<EffectList> list_;
  std::shared_ptr<Effect> effect_;
};

// A service interface T names itself: `static constexpr std::string_view service = "sandbox/1"`, a
// string with a version and never a typeid, which is no identity across shared objects.
// An event E likewise: `static constexpr std::string_view event = "…/1"`.
class STOCKADE_API Context {
 public:
  // A new tree. The root fiber is ACTIVE and lives as long as a context or fiber refers to it.
  static Context root(Loop& loop, Log log);

  Context(std::shared_ptr<Fiber> fiber, std::shared_ptr<const Scope> scope);
  // Its effects become those of `list`.
  Context(std::shared_ptr<Fiber> fiber, std::shared_ptr<const Scope> scope,
          std::shared_ptr<EffectList> list);

  Loop& loop() const;
  Log log() const;  // named after the fiber
  const std::shared_ptr<Fiber>& fiber() const noexcept { return fiber_; }
  const std::shared_ptr<const Scope>& scope() const noexcept { return scope_; }
  const std::shared_ptr<EffectList>& effects() const noexcept { return list_; }

  // Mounts a child. Returns before its body runs; `fiber->settled()` tells how that went.
  std::shared_ptr<Fiber> plugin(PluginDefinition definition, nlohmann::json config,
                                std::string name = {}) const;

  // Throws Error `SERVICE_TAKEN` when this scope has a provider already. Others see the service
  // while this fiber is ACTIVE and `available` (empty: always) says yes; one that throws says no.
  // Tell of a new answer with notify().
  template <class T>
  Disposer provide(std::type_identity_t<std::shared_ptr<T>> service,
                   std::function<bool()> available = {}) const {
    return provide_erased(T::service, std::move(service), std::move(available));
  }
  // For a family of services with one interface, such as `tool:NAME/1`.
  template <class T>
  Disposer provide_as(std::string_view key, std::type_identity_t<std::shared_ptr<T>> service,
                      std::function<bool()> available = {}) const {
    return provide_erased(key, std::move(service), std::move(available));
  }
  void notify(std::string_view key) const;
  // Gives the service that this fiber provides another object: seen at once, and nobody reloads.
  // Throws Error `SERVICE_NOT_PROVIDED` or, of another fiber's, `SERVICE_FOREIGN`.
  template <class T>
  void set(std::type_identity_t<std::shared_ptr<T>> service) const {
    set_erased(T::service, std::move(service));
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
    return std::static_pointer_cast<T>(find_erased(T::service, false));
  }
  template <class T>
  std::shared_ptr<T> find_as(std::string_view key) const {
    return std::static_pointer_cast<T>(find_erased(key, false));
  }
  // Also what is provided but not available yet, because its provider is still loading.
  template <class T>
  std::shared_ptr<T> peek() const {
    return std::static_pointer_cast<T>(find_erased(T::service, true));
  }

  // A context in which `key` is a service of its own, provided and seen only below it; one with a
  // label is shared with every context that isolates the key under an equal label.
  Context isolate(std::string_view key, std::string_view label = {}) const;

  // What users below ask of a service: objects whose keys are merged, the innermost last.
  Context intercept(std::string_view key, nlohmann::json config) const;
  // What this context asks of it, over `base` and under `head`.
  nlohmann::json service_config(std::string_view key, nlohmann::json base,
                                const nlohmann::json& head) const;

  // Registers what undoes a side effect. Throws Error `INACTIVE_EFFECT`.
  Disposer effect(std::string label, Undo undo) const;
  Disposer effect(std::string label, std::function<void()> undo) const;

  // An effect of several steps: what `setup(Context)` registers through its context is listed below
  // `label` and undone with it. A set-up that throws undoes what it registered, and throws here.
  // One that returns a Task runs from the next turn on; Disposer::ready tells how it went, and an
  // undo waits for its end.
  template <class F>
  Disposer steps(std::string label, F setup) const {
    if constexpr (std::is_void_v<std::invoke_result_t<F&, Context>>)
      return steps_now(std::move(label), std::move(setup));
    else
      return steps_later(std::move(label), std::move(setup));
  }

  // Background work that the fiber owns: begins on a later turn, is cancelled when the fiber
  // unloads, and is no effect any more once it has ended. Its error is logged.
  Disposer start(std::string label, Task<> task) const;

  // A listener takes `const E&`; an asynchronous one, which returns a Task, takes E by value. What
  // it returns is its answer, an E::Result or an optional of one. One that wraps others in a
  // waterfall also takes a `const Next<E>&`.
  template <class E, class F>
  Disposer on(F listener, ListenOptions options = {}) const {
    return listen(E::event, detail::erase_listener<E>(std::move(listener)), options, false);
  }
  // Over before it is called.
  template <class E, class F>
  Disposer once(F listener, ListenOptions options = {}) const {
    return listen(E::event, detail::erase_listener<E>(std::move(listener)), options, true);
  }
  // An error of a listener reaches the emitter, and later listeners are not called. What an
  // asynchronous one throws is logged.
  template <class E>
  void emit(const E& event, const EventFilter& filter = {}) const {
    detail::emit(fiber_->registry(), event, filter);
  }
  // Throws AggregateError `LISTENERS_FAILED` once all have ended.
  template <class E>
  Task<> parallel(E event, EventFilter filter = {}) const {
    return detail::parallel(fiber_->shared_registry(), std::move(event), std::move(filter));
  }
  template <class E>
  Task<std::optional<EventResult<E>>> serial(E event, EventFilter filter = {}) const {
    return detail::serial(fiber_->shared_registry(), std::move(event), std::move(filter));
  }
  // An asynchronous listener's answer is not waited for: use serial.
  template <class E>
  std::optional<EventResult<E>> bail(const E& event, const EventFilter& filter = {}) const {
    return detail::bail(fiber_->registry(), event, filter);
  }
  template <class E>
  EventResult<E> waterfall(const E& event, const Next<E>& inner,
                           const EventFilter& filter = {}) const {
    return detail::waterfall(fiber_->registry(), event, inner, filter);
  }
  // Listeners that see the same `key` as this context.
  EventFilter sharing(std::string_view key) const;

  // Keeps this plugin's code mapped: for what may still run after its fiber was disposed.
  std::shared_ptr<const void> code() const;

 private:
  void require_usable() const;
  Disposer add(Effect effect) const;
  Disposer provide_erased(std::string_view key, std::shared_ptr<void> service,
                          std::function<bool()> available) const;
  void set_erased(std::string_view key, std::shared_ptr<void> service) const;
  std::shared_ptr<void> get_erased(std::string_view key) const;
  std::shared_ptr<void> find_erased(std::string_view key, bool also_loading) const;
  Disposer steps_now(std::string label, const std::function<void(Context)>& setup) const;
  Disposer steps_later(std::string label, std::function<Task<>(Context)> setup) const;
  Disposer listen(std::string_view event, std::function<void(detail::ListenerCall&)> callback,
                  ListenOptions options, bool once) const;

  std::shared_ptr<Fiber> fiber_;
  std::shared_ptr<const Scope> scope_;
  std::shared_ptr<EffectList> list_;
};

}  // namespace stockade
