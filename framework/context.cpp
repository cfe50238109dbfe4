// SPDX-License-Identifier: MIT
#include "framework/context.hpp"

#include <nlohmann/json.hpp>
#include <optional>

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

// The references are held until the undo has ended, whoever drops the disposer.
Task<> undo_effect([[maybe_unused]] std::shared_ptr<Fiber> fiber, std::shared_ptr<EffectList> list,
                   std::shared_ptr<Effect> effect) {
  auto undoing = list->undo(std::move(effect));
  co_await undoing;
}

Task<> setup_ended([[maybe_unused]] std::shared_ptr<Fiber> fiber, std::shared_ptr<Effect> effect) {
  if (!effect->steps) co_return;
  auto ended = effect->steps->setup_ended();
  co_await ended;
}

// The fiber's own list, as long as the fiber.
std::shared_ptr<EffectList> own_list(const std::shared_ptr<Fiber>& fiber) {
  return {fiber, &fiber->effect_list()};
}

}  // namespace

Task<> Disposer::dispose() const {
  return undo_effect(fiber_, list_, effect_);
}

Task<> Disposer::ready() const {
  return setup_ended(fiber_, effect_);
}

Context Context::root(Loop& loop, Log log) {
  auto registry = std::make_shared<Registry>(loop, std::move(log));
  auto scope = std::make_shared<const Scope>();
  return {std::make_shared<Fiber>(registry, nullptr, scope, PluginDefinition{}, nullptr, "root"),
          scope};
}

Context::Context(std::shared_ptr<Fiber> fiber, std::shared_ptr<const Scope> scope)
    : fiber_(std::move(fiber)), scope_(std::move(scope)), list_(own_list(fiber_)) {}

Context::Context(std::shared_ptr<Fiber> fiber, std::shared_ptr<const Scope> scope,
                 std::shared_ptr<EffectList> list)
    : fiber_(std::move(fiber)), scope_(std::move(scope)), list_(std::move(list)) {}

Loop& Context::loop() const {
  return fiber_->registry().loop();
}
Log Context::log() const {
  return fiber_->registry().log().named(fiber_->name());
}
std::shared_ptr<const void> Context::code() const {
  return fiber_->code();
}

void Context::require_usable() const {
  if (!list_->setting_up()) fiber_->require_usable();
}

Disposer Context::add(Effect effect) const {
  require_usable();
  return {fiber_, list_, list_->add(std::move(effect))};
}

std::shared_ptr<Fiber> Context::plugin(PluginDefinition definition, nlohmann::json config,
                                       std::string name) const {
  require_usable();
  if (!definition.apply)
    throw Error("PLUGIN_INVALID", "the plugin \"" + definition.name + "\" has no body to run",
                definition.name);
  if (name.empty()) name = definition.name.empty() ? std::string(fiber_->name()) : definition.name;
  auto scope = scope_for(scope_, definition);
  auto child = std::make_shared<Fiber>(
      fiber_->shared_registry(), fiber_, std::move(scope), std::move(definition),
      std::make_shared<const nlohmann::json>(std::move(config)), std::move(name));
  child->mount(list_);
  return child;
}

Disposer Context::provide_erased(std::string_view key, std::shared_ptr<void> service,
                                 std::function<bool()> available) const {
  require_usable();
  ServiceEntry entry;
  entry.key = key;
  entry.realm = scope_->realm(key);
  entry.provider = fiber_.get();
  entry.value = with_code(std::move(service), fiber_->code());
  entry.available = std::move(available);
  Registry* registry = &fiber_->registry();
  const std::uint64_t serial = registry->add_service(std::move(entry));
  return effect(
      "ctx.provide(\"" + std::string(key) + "\")",
      [registry, key = std::string(key), serial] { registry->remove_service(key, serial); });
}

void Context::notify(std::string_view key) const {
  fiber_->registry().service_changed(key, scope_->realm(key));
}

void Context::set_erased(std::string_view key, std::shared_ptr<void> service) const {
  fiber_->registry().set_service(key, scope_->realm(key), *fiber_,
                                 with_code(std::move(service), fiber_->code()));
}

std::shared_ptr<void> Context::find_erased(std::string_view key, bool also_loading) const {
  const Registry& registry = fiber_->registry();
  const ServiceEntry* entry = registry.service(key, scope_->realm(key), *fiber_);
  if (!entry) return nullptr;
  // A provider's own body may use what it has provided before it is ACTIVE.
  const bool own = entry->provider == fiber_.get();
  const bool visible =
      also_loading || (own ? registry.offered(*entry) : registry.available(*entry));
  return visible ? entry->value : nullptr;
}

std::shared_ptr<void> Context::get_erased(std::string_view key) const {
  const Registry& registry = fiber_->registry();
  const ServiceEntry* entry = registry.service(key, scope_->realm(key), *fiber_);
  if (entry && entry->provider == fiber_.get()) return entry->value;
  auto failure = [key](const char* code, const std::string& text) {
    return Error(code, text, std::string(key));
  };
  if (!fiber_->root()) {
    if (!fiber_->declares(key))
      throw failure("SERVICE_NOT_DECLARED",
                    "cannot get property \"" + std::string(key) + "\" without inject");
    if (fiber_->state() != FiberState::active && fiber_->state() != FiberState::loading)
      throw failure("SERVICE_INACTIVE",
                    "cannot get required service \"" + std::string(key) + "\" in inactive context");
  }
  if (!entry || !registry.available(*entry))
    throw failure(
        "SERVICE_INACTIVE",
        "the service \"" + std::string(key) + "\" is not available: " +
            (entry ? "its provider <" + std::string(entry->provider->name()) + "> is not active"
                   : "no active plugin provides it"));
  return entry->value;
}

Context Context::isolate(std::string_view key, std::string_view label) const {
  Registry& registry = fiber_->registry();
  auto scope = std::make_shared<Scope>(*scope_);
  scope->realms.insert_or_assign(
      std::string(key), label.empty() ? registry.next_id() : registry.realm_of_label(label));
  return {fiber_, std::move(scope), list_};
}

Context Context::intercept(std::string_view key, nlohmann::json config) const {
  auto scope = std::make_shared<Scope>(*scope_);
  scope->intercepts.emplace_back(key, std::make_shared<const nlohmann::json>(std::move(config)));
  return {fiber_, std::move(scope), list_};
}

nlohmann::json Context::service_config(std::string_view key, nlohmann::json base,
                                       const nlohmann::json& head) const {
  for (const auto& [service, config] : scope_->intercepts)
    if (service == key) base.update(*config);
  if (!head.is_null()) base.update(head);
  return base;
}

EventFilter Context::sharing(std::string_view key) const {
  return [key = std::string(key), realm = scope_->realm(key)](const Scope& scope) {
    return scope.realm(key) == realm;
  };
}

Disposer Context::effect(std::string label, Undo undo) const {
  return add({std::move(label), std::move(undo), nullptr, nullptr, std::nullopt});
}

Disposer Context::effect(std::string label, std::function<void()> undo) const {
  return effect(std::move(label), Undo([undo = std::move(undo)] { return run_undo(undo); }));
}

Disposer Context::steps_now(std::string label, const std::function<void(Context)>& setup) const {
  auto steps = std::make_shared<EffectList>(*fiber_);
  Disposer whole = add({std::move(label), nullptr, nullptr, steps, std::nullopt});
  steps->begin_setup();
  try {
    setup(Context(fiber_, scope_, steps));
  } catch (...) {
    steps->end_setup();
    fiber_->registry().tasks().start_now(whole.dispose());
    throw;
  }
  steps->end_setup();
  return whole;
}

namespace {

Task<> set_up(std::function<Task<>(Context)> setup, Context inner,
              std::shared_ptr<EffectList> steps, Disposer whole) {
  std::exception_ptr error;
  try {
    auto running = setup(inner);
    co_await running;
  } catch (...) {
    error = std::current_exception();
  }
  if (!error) {
    steps->end_setup();
    co_return;
  }
  auto undoing = steps->undo_steps();
  co_await undoing;
  auto forgetting = whole.dispose();
  steps->end_setup(error);
  co_await forgetting;
}

}  // namespace

Disposer Context::steps_later(std::string label, std::function<Task<>(Context)> setup) const {
  auto steps = std::make_shared<EffectList>(*fiber_);
  Disposer whole = add({std::move(label), nullptr, nullptr, steps, std::nullopt});
  steps->begin_setup();
  fiber_->registry().tasks().start(
      set_up(std::move(setup), Context(fiber_, scope_, steps), steps, whole));
  return whole;
}

namespace {

Task<> work(Task<> task, Loop* loop, Log log, std::weak_ptr<EffectList> list,
            std::weak_ptr<Effect> effect) {
  std::exception_ptr error;
  try {
    co_await task;
  } catch (...) {
    error = std::current_exception();
  }
  if (error) log.error("background work failed: " + describe(error));
  // Not here: the effect owns this frame.
  loop->post([list, effect] {
    auto still = effect.lock();
    if (auto owner = list.lock(); owner && still) owner->forget(still.get());
  });
}

}  // namespace

Disposer Context::start(std::string label, Task<> task) const {
  auto scope = std::make_shared<std::optional<TaskScope>>();
  scope->emplace(loop(), [](std::exception_ptr) {});
  Disposer whole = effect(std::move(label), [scope] { scope->reset(); });
  (*scope)->start(work(std::move(task), &loop(), log(), whole.list_, whole.effect_));
  return whole;
}

Disposer Context::listen(std::string_view event,
                         std::function<void(detail::ListenerCall&)> callback, ListenOptions options,
                         bool once) const {
  require_usable();
  auto listener = std::make_shared<detail::Listener>();
  listener->call = std::move(callback);
  listener->owner = fiber_.get();
  listener->scope = scope_;
  listener->global = options.global;
  listener->once = once;
  Registry* registry = &fiber_->registry();
  auto undo = [registry, event = std::string(event), listener] {
    registry->listeners().remove(event, listener);
  };
  auto effect =
      list_->add({"ctx.on(\"" + std::string(event) + "\")", Undo([undo] { return run_undo(undo); }),
                  nullptr, nullptr, std::nullopt});
  listener->list = list_;
  listener->effect = effect;
  registry->listeners().add(event, std::move(listener), options.prepend);
  return {fiber_, list_, std::move(effect)};
}

}  // namespace stockade
