// SPDX-License-Identifier: MIT
#include "framework/fiber.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/context.hpp"
#include "framework/error.hpp"
#include "framework/fields.hpp"

namespace stockade {

std::shared_ptr<const Scope> scope_for(std::shared_ptr<const Scope> scope,
                                       const PluginDefinition& definition) {
  if (definition.inject_config.empty()) return scope;
  auto own = std::make_shared<Scope>(*scope);
  for (const auto& [key, asked] : definition.inject_config)
    own->intercepts.emplace_back(key, asked);
  return own;
}

Fiber::Fiber(std::shared_ptr<Registry> registry, std::shared_ptr<Fiber> parent,
             std::shared_ptr<const Scope> scope, PluginDefinition definition,
             std::shared_ptr<const nlohmann::json> config, std::string name)
    : registry_(std::move(registry)),
      parent_(parent),
      root_(parent == nullptr),
      uid_(root_ ? 0 : registry_->next_id()),
      scope_(std::move(scope)),
      definition_(std::move(definition)),
      config_(std::move(config)),
      name_(std::move(name)),
      effects_(*this) {
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
  const auto serials = epoch();
  for (std::size_t i = 0; i < serials.size(); ++i)
    if (serials[i] == 0) keys.push_back(inject()[i]);
  return keys;
}

std::vector<std::string> Fiber::effects() const {
  std::vector<std::string> labels;
  for (const auto& effect : effects_.list()) labels.push_back(effect.label);
  return labels;
}

namespace {

void collect_children(const EffectList& list, std::vector<std::shared_ptr<Fiber>>& out) {
  for (const auto& effect : list.effects()) {
    if (effect->child) out.push_back(effect->child);
    if (effect->steps) collect_children(*effect->steps, out);
  }
}

}  // namespace

std::vector<std::shared_ptr<Fiber>> Fiber::children() const {
  std::vector<std::shared_ptr<Fiber>> out;
  collect_children(effects_, out);
  return out;
}

bool Fiber::is_or_is_below(const Fiber& other) const noexcept {
  if (this == &other) return true;
  auto above = parent_.lock();
  return above && above->is_or_is_below(other);
}

const Staging* Fiber::staging() const noexcept {
  if (staging_) return staging_;
  auto above = parent_.lock();
  return above ? above->staging() : nullptr;
}

bool Fiber::declares(std::string_view key) const noexcept {
  for (const Fiber* fiber = this; fiber && !fiber->root();) {
    if (std::find(fiber->inject().begin(), fiber->inject().end(), key) != fiber->inject().end())
      return true;
    fiber = fiber->parent_.lock().get();  // alive: a mounted fiber's parents are
  }
  return false;
}

bool Fiber::needs(std::string_view key, Realm realm) const {
  return std::find(inject().begin(), inject().end(), key) != inject().end() &&
         scope_->realm(key) == realm;
}

bool Fiber::ready() const {
  const auto serials = epoch();
  return std::find(serials.begin(), serials.end(), 0U) == serials.end();
}

// Which providers the fiber sees now; 0 for one that is absent.
std::vector<std::uint64_t> Fiber::epoch() const {
  std::vector<std::uint64_t> serials;
  for (const auto& key : definition_.inject) {
    const auto* entry = registry_->service(key, scope_->realm(key), *this);
    serials.push_back(entry && registry_->available(*entry) ? entry->serial : 0);
  }
  return serials;
}

void Fiber::set_state(FiberState state) {
  const FiberState before = std::exchange(state_, state);
  if (registry_->log().enabled(LogLevel::debug))
    registry_->log().debug(name_ + ": " + enum_name(before) + " > " + enum_name(state));
  if ((before == FiberState::active) != (state == FiberState::active))
    registry_->services_changed(*this);
  registry_->tell(FiberStatus{*this, before, state});
}

void Fiber::require_usable() const {
  // A body that is still running may add what it holds, even when its fiber is to go after it.
  const bool ending = disposing_ && state_ != FiberState::loading;
  if (ending || state_ == FiberState::disposed || state_ == FiberState::unloading)
    throw Error("INACTIVE_EFFECT", "cannot create effect on inactive context", name_);
}

void Fiber::require(std::string key) {
  if (std::find(inject().begin(), inject().end(), key) == inject().end())
    definition_.inject.push_back(std::move(key));
}

void Fiber::mount(const std::shared_ptr<EffectList>& list) {
  home_ = list;
  self_ = list->add({"ctx.plugin()", nullptr, shared_from_this(), nullptr, std::nullopt});
  try {
    detail::emit(*registry_, FiberMounted{*this}, {});
  } catch (...) {
    disposing_ = true;
    uid_.reset();
    state_ = FiberState::disposed;
    if (auto self = self_.lock()) list->forget(self.get());
    throw;
  }
  refresh();
}

// What is below one that leaves goes with it; loading once more in between would be for nothing.
bool Fiber::retired() const noexcept {
  if (retired_) return true;
  auto above = parent_.lock();
  return above && above->retired();
}

void Fiber::retire(const Fiber* successor) {
  retired_ = true;
  if (!successor) return;
  auto list = home_.lock();
  auto moved = successor->self_.lock();
  if (list && moved) list->replace(self_.lock().get(), moved.get());
}

void Fiber::refresh() {
  if (driving_ || root() || (retired() && !disposing_)) return;
  driving_ = true;
  idle_.emplace(registry_->loop());
  registry_->tasks().start(drive(shared_from_this()));
}

// `self` keeps the fiber while it is driven, even after its parent let go of it.
Task<> Fiber::drive([[maybe_unused]] std::shared_ptr<Fiber> self) {
  for (;;) {
    const bool asked = config_ != loaded_config_ || restarts_ != loaded_restarts_;
    if (state_ == FiberState::active) {
      // One that is retired keeps its providers until it goes.
      const bool stale = !retired() && (asked || epoch() != loaded_epoch_);
      if (!disposing_ && !stale) break;
      set_state(FiberState::unloading);
      auto unloading = effects_.undo_all();
      co_await unloading;
      set_state(disposing_ ? FiberState::disposed : FiberState::pending);
    } else if (disposing_) {
      if (state_ != FiberState::disposed) {
        auto unloading = effects_.undo_all();  // what was registered while PENDING
        co_await unloading;
        set_state(FiberState::disposed);
      }
      break;
    } else if (state_ == FiberState::failed && asked) {
      set_state(FiberState::pending);  // by update or restart, never because a service changed
      error_ = nullptr;
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
  if (auto list = home_.lock())
    if (auto effect = self_.lock()) list->forget(effect.get());
  disposed_->settle();
}

Task<> Fiber::load() {
  set_state(FiberState::loading);
  error_ = nullptr;
  loaded_epoch_ = epoch();
  loaded_config_ = config_;
  loaded_restarts_ = restarts_;
  const Save save = std::exchange(save_, Save::no);
  try {
    if (definition_.check_config) definition_.check_config(*loaded_config_);
    auto body = definition_.apply(Context(shared_from_this(), scope_), *loaded_config_);
    co_await body;
  } catch (...) {
    error_ = std::current_exception();
  }
  if (!error_) {
    set_state(FiberState::active);
    if (save == Save::yes && config_ == loaded_config_) registry_->tell(FiberUpdated{*this, save});
    co_return;
  }
  registry_->log().error(name_ + ": " + describe(error_));
  set_state(FiberState::unloading);
  auto unloading = effects_.undo_all();
  co_await unloading;
  set_state(FiberState::failed);
}

Task<> Fiber::quiet() {
  auto self = shared_from_this();
  while (driving_) {
    Completion<> idle = *idle_;
    co_await idle;
  }
}

Task<> Fiber::settled() {
  auto self = shared_from_this();
  auto idle = quiet();
  co_await idle;
  if (state_ == FiberState::failed && error_) std::rethrow_exception(error_);
}

Task<> Fiber::update(nlohmann::json config, Save save) {
  if (root() || disposing_)
    throw Error("INACTIVE_EFFECT", "cannot update the config of an inactive fiber", name_);
  // One that waits is checked when it loads.
  if (state_ != FiberState::pending && definition_.check_config) definition_.check_config(config);
  detail::waterfall<FiberUpdating>(*registry_, {*this, config},
                                   [&] {
                                     config_ =
                                         std::make_shared<const nlohmann::json>(std::move(config));
                                     save_ = save;
                                     refresh();
                                     return std::monostate{};
                                   },
                                   {});
  return settled();
}

Task<> Fiber::restart() {
  if (root() || disposing_)
    throw Error("INACTIVE_EFFECT", "cannot restart an inactive fiber", name_);
  ++restarts_;
  refresh();
  return settled();
}

namespace {

Task<> undo_root(std::shared_ptr<Fiber> root, Completion<> done) {
  auto unloading = root->effect_list().undo_all();
  co_await unloading;
  done.settle();
}

}  // namespace

Completion<> Fiber::dispose() {
  auto self = shared_from_this();  // the parent's reference goes below
  Completion<> again(registry_->loop());
  if (root()) {
    // Disposing the root undoes everything below it and leaves it usable.
    registry_->tasks().start(undo_root(self, again));
    return again;
  }
  if (disposing_) {
    again.settle();
    return again;
  }
  disposing_ = true;
  uid_.reset();
  disposed_.emplace(registry_->loop());
  registry_->tell(FiberDisposing{*this});
  refresh();
  return *disposed_;
}

Completion<> Fiber::disposal() {
  if (disposed_) return *disposed_;
  return dispose();
}

}  // namespace stockade
