// SPDX-License-Identifier: MIT
#include "framework/fiber.hpp"

#include <algorithm>

#include "framework/context.hpp"
#include "framework/error.hpp"
#include "framework/fields.hpp"

namespace stockade {

Fiber::Fiber(std::shared_ptr<Registry> registry, std::shared_ptr<Fiber> parent,
             std::shared_ptr<const Scope> scope, PluginDefinition definition,
             std::shared_ptr<const nlohmann::json> config, std::string name)
    : registry_(std::move(registry)),
      parent_(parent),
      root_(parent == nullptr),
      scope_(std::move(scope)),
      definition_(std::move(definition)),
      config_(std::move(config)),
      name_(std::move(name)) {
  registry_->add_fiber(*this);
  if (root()) state_ = FiberState::active;
}

Fiber::~Fiber() {
  registry_->remove_fiber(*this);
}

std::vector<std::string> Fiber::provides() const {
  std::vector<std::string> keys;
  for (const auto* entry : registry_->services_of(*this)) keys.push_back(entry->key);
  return keys;
}

std::vector<std::string> Fiber::waiting_for() const {
  std::vector<std::string> keys;
  for (const auto& key : definition_.inject)
    if (!registry_->available_service(key, scope_->realm(key))) keys.push_back(key);
  return keys;
}

std::vector<std::string> Fiber::effects() const {
  std::vector<std::string> labels;
  for (const auto& effect : effects_) labels.push_back(effect.label);
  return labels;
}

std::vector<std::shared_ptr<Fiber>> Fiber::children() const {
  std::vector<std::shared_ptr<Fiber>> out;
  for (const auto& effect : effects_)
    if (effect.child) out.push_back(effect.child);
  return out;
}

bool Fiber::declares(std::string_view key) const {
  if (std::find(inject().begin(), inject().end(), key) != inject().end()) return true;
  auto parent = parent_.lock();
  return parent && parent->declares(key);
}

bool Fiber::needs(std::string_view key, Realm realm) const {
  return std::find(inject().begin(), inject().end(), key) != inject().end() &&
         scope_->realm(key) == realm;
}

bool Fiber::ready() const {
  return waiting_for().empty();
}

// Which providers the fiber sees now; 0 for one that is absent.
std::vector<std::uint64_t> Fiber::epoch() const {
  std::vector<std::uint64_t> serials;
  for (const auto& key : definition_.inject) {
    const auto* entry = registry_->available_service(key, scope_->realm(key));
    serials.push_back(entry ? entry->serial : 0);
  }
  return serials;
}

void Fiber::set_state(FiberState state) {
  registry_->log().debug(name_ + ": " + enum_name(state_) + " > " + enum_name(state));
  bool was_active = state_ == FiberState::active;
  state_ = state;
  if (was_active != (state == FiberState::active)) registry_->services_changed(*this);
}

void Fiber::require_usable() const {
  if (disposing_ || state_ == FiberState::disposed || state_ == FiberState::unloading)
    throw Error("INACTIVE_EFFECT", "cannot create effect on inactive context", name_);
}

std::uint64_t Fiber::add_effect(std::string label, Undo undo, std::shared_ptr<Fiber> child) {
  require_usable();
  std::uint64_t id = registry_->next_id();
  effects_.push_back({id, std::move(label), std::move(undo), std::move(child)});
  return id;
}

Task<> Fiber::undo_effect(std::uint64_t id) {
  auto found = std::find_if(effects_.begin(), effects_.end(),
                            [id](const Effect& effect) { return effect.id == id; });
  if (found == effects_.end()) co_return;
  Effect effect = std::move(*found);
  effects_.erase(found);
  auto undo = effect.undo();
  co_await undo;
}

void Fiber::forget_effect(std::uint64_t id) {
  std::erase_if(effects_, [id](const Effect& effect) { return effect.id == id; });
}

void Fiber::refresh() {
  if (driving_ || root()) return;
  driving_ = true;
  idle_.emplace(registry_->loop());
  registry_->tasks().start(drive(shared_from_this()));
}

// `self` keeps the fiber while it is driven, even after its parent let go of it.
Task<> Fiber::drive([[maybe_unused]] std::shared_ptr<Fiber> self) {
  for (;;) {
    bool stale = disposing_ || (state_ == FiberState::active && epoch() != loaded_epoch_);
    if (stale && state_ == FiberState::active) {
      set_state(FiberState::unloading);
      auto unloading = unload();
      co_await unloading;
      set_state(disposing_ ? FiberState::disposed : FiberState::pending);
    } else if (disposing_) {
      if (state_ != FiberState::disposed) {
        auto unloading = unload();  // what was registered while PENDING
        co_await unloading;
        set_state(FiberState::disposed);
      }
      break;
    } else if (state_ == FiberState::pending && ready()) {
      auto loading = load();
      co_await loading;
    } else {
      break;
    }
  }
  driving_ = false;
  auto idle = std::exchange(idle_, std::nullopt);
  idle->settle();
  if (!disposed_) co_return;
  // The parent's effect goes with it; when the parent itself disposes us, it already has.
  if (auto parent = parent_.lock())
    std::erase_if(parent->effects_, [this](const Effect& e) { return e.child.get() == this; });
  disposed_->settle();
}

Task<> Fiber::load() {
  set_state(FiberState::loading);
  error_ = nullptr;
  loaded_epoch_ = epoch();
  try {
    if (definition_.check_config) definition_.check_config(*config_);
    auto body = definition_.apply(Context(shared_from_this(), scope_), *config_);
    co_await body;
  } catch (...) {
    error_ = std::current_exception();
  }
  if (!error_) {
    set_state(FiberState::active);
    co_return;
  }
  registry_->log().error(name_ + ": " + describe(error_));
  set_state(FiberState::unloading);
  auto unloading = unload();
  co_await unloading;
  set_state(FiberState::failed);
}

Task<> Fiber::unload() {
  while (!effects_.empty()) {
    Effect effect = std::move(effects_.back());
    effects_.pop_back();
    std::exception_ptr error;
    try {
      auto undo = effect.undo();
      co_await undo;
    } catch (...) {
      error = std::current_exception();
    }
    if (error)
      registry_->log().error(name_ + ": undoing " + effect.label + " failed: " + describe(error));
  }
}

Task<> Fiber::settled() {
  auto self = shared_from_this();
  while (driving_) {
    Completion<> idle = *idle_;
    co_await idle;
  }
  if (state_ == FiberState::failed && error_) std::rethrow_exception(error_);
}

Completion<> Fiber::dispose() {
  auto self = shared_from_this();  // the parent's reference goes below
  Completion<> again(registry_->loop());
  if (disposing_) {
    again.settle();
    return again;
  }
  if (root()) {
    // Disposing the root undoes everything below it and leaves it usable.
    auto children_and_effects = [](std::shared_ptr<Fiber> fiber, Completion<> done) -> Task<> {
      auto unloading = fiber->unload();
      co_await unloading;
      done.settle();
    };
    registry_->tasks().start(children_and_effects(self, again));
    return again;
  }
  disposing_ = true;
  disposed_.emplace(registry_->loop());
  refresh();
  return *disposed_;
}

Completion<> Fiber::disposal() {
  if (!disposed_) return dispose();
  return *disposed_;
}

}  // namespace stockade
