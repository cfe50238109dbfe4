// SPDX-License-Identifier: MIT
#include "framework/context.hpp"

#include <nlohmann/json.hpp>

#include "framework/error.hpp"

namespace stockade {

namespace {

// Made here and not in a header, so that the reference counts that callers hold are code of this
// library: the last release may then unmap the provider's.
std::shared_ptr<void> with_code(std::shared_ptr<void> object, std::shared_ptr<const void> code) {
  if (!code) return object;
  void* raw = object.get();
  auto release = [object = std::move(object), code = std::move(code)](void*) mutable {
    object.reset();
    code.reset();
  };
  return std::shared_ptr<void>(raw, std::move(release));
}

Task<> run_undo(std::function<void()> undo) {
  undo();
  co_return;
}

Task<> await_disposal(std::shared_ptr<Fiber> child) {
  Completion<> disposed = child->disposal();
  co_await disposed;
}

}  // namespace

Task<> Disposer::dispose() const {
  return fiber_->undo_effect(id_);
}

Context Context::root(Loop& loop, Log log) {
  auto registry = std::make_shared<Registry>(loop, std::move(log));
  auto scope = std::make_shared<const Scope>();
  return {std::make_shared<Fiber>(registry, nullptr, scope, PluginDefinition{}, nullptr, "root"),
          scope};
}

Context::Context(std::shared_ptr<Fiber> fiber, std::shared_ptr<const Scope> scope)
    : fiber_(std::move(fiber)), scope_(std::move(scope)) {}

Loop& Context::loop() const {
  return fiber_->registry().loop();
}
Log Context::log() const {
  return fiber_->registry().log().named(fiber_->name());
}
std::shared_ptr<const void> Context::code() const {
  return fiber_->code();
}

std::shared_ptr<Fiber> Context::plugin(PluginDefinition definition, nlohmann::json config,
                                       std::string name) const {
  fiber_->require_usable();
  if (!definition.apply)
    throw Error("PLUGIN_INVALID", "the plugin \"" + definition.name + "\" has no body to run",
                definition.name);
  if (name.empty()) name = definition.name.empty() ? std::string(fiber_->name()) : definition.name;
  auto child = std::make_shared<Fiber>(
      fiber_->shared_registry(), fiber_, scope_, std::move(definition),
      std::make_shared<const nlohmann::json>(std::move(config)), std::move(name));
  fiber_->add_effect(
      "ctx.plugin()", [child] { return await_disposal(child); }, child);
  child->refresh();
  return child;
}

Disposer Context::provide_erased(std::string_view key, std::shared_ptr<void> service) const {
  fiber_->require_usable();
  Realm realm = scope_->realm(key);
  ServiceEntry entry;
  entry.key = key;
  entry.realm = realm;
  entry.provider = fiber_.get();
  entry.value = with_code(std::move(service), fiber_->code());
  Registry* registry = &fiber_->registry();
  registry->add_service(std::move(entry));
  return effect(
      "ctx.provide(\"" + std::string(key) + "\")",
      [registry, key = std::string(key), realm] { registry->remove_service(key, realm); });
}

std::shared_ptr<void> Context::find_erased(std::string_view key) const {
  Registry& registry = fiber_->registry();
  const ServiceEntry* entry = registry.service(key, scope_->realm(key));
  if (!entry) return nullptr;
  // A provider's own body may use what it has provided before it is ACTIVE.
  bool visible = entry->provider == fiber_.get() || entry->provider->state() == FiberState::active;
  return visible ? entry->value : nullptr;
}

std::shared_ptr<void> Context::get_erased(std::string_view key) const {
  auto service = find_erased(key);
  const ServiceEntry* entry = fiber_->registry().service(key, scope_->realm(key));
  bool own = entry && entry->provider == fiber_.get();
  if (!own && !fiber_->root() && !fiber_->declares(key))
    throw Error("SERVICE_NOT_DECLARED",
                "cannot get property \"" + std::string(key) + "\" without inject",
                std::string(key));
  if (!own && !fiber_->root() && fiber_->state() != FiberState::active &&
      fiber_->state() != FiberState::loading)
    throw Error("SERVICE_INACTIVE",
                "cannot get required service \"" + std::string(key) + "\" in inactive context",
                std::string(key));
  if (!service)
    throw Error(
        "SERVICE_INACTIVE",
        "the service \"" + std::string(key) + "\" is not available: " +
            (entry ? "its provider <" + std::string(entry->provider->name()) + "> is not active"
                   : "no active plugin provides it"),
        std::string(key));
  return service;
}

Context Context::isolate(std::string_view key) const {
  auto scope = std::make_shared<Scope>(*scope_);
  scope->realms.insert_or_assign(std::string(key), fiber_->registry().next_id());
  return {fiber_, std::move(scope)};
}

Disposer Context::effect(std::string label, Undo undo) const {
  return {fiber_, fiber_->add_effect(std::move(label), std::move(undo))};
}

Disposer Context::effect(std::string label, std::function<void()> undo) const {
  return effect(std::move(label), Undo([undo = std::move(undo)] { return run_undo(undo); }));
}

Disposer Context::listen(std::string_view event, std::function<void(const void*)> callback,
                         bool prepend, bool once) const {
  fiber_->require_usable();
  Registry* registry = &fiber_->registry();
  Listener listener;
  listener.id = registry->next_id();
  listener.event = event;
  listener.owner = fiber_.get();
  listener.once = once;
  listener.callback = std::make_shared<const std::function<void(const void*)>>(std::move(callback));
  std::uint64_t id = listener.id;
  std::uint64_t effect_id = fiber_->add_effect(
      "ctx.on(\"" + std::string(event) + "\")",
      Undo([registry, id] { return run_undo([registry, id] { registry->remove_listener(id); }); }));
  listener.effect = effect_id;
  registry->add_listener(std::move(listener), prepend);
  return {fiber_, effect_id};
}

}  // namespace stockade
