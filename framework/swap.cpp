// SPDX-License-Identifier: MIT
#include "framework/swap.hpp"

#include <algorithm>

#include "framework/error.hpp"

namespace stockade {

namespace {

Error waits(const Fiber& fiber) {
  std::string text;
  for (const auto& key : fiber.waiting_for()) text += (text.empty() ? "\"" : ", \"") + key + "\"";
  return Error("SERVICE_UNAVAILABLE", "it waits for " + text, std::string(fiber.name()));
}

}  // namespace

Swap::Swap(Context where) : where_(std::move(where)) {}

Swap::~Swap() {
  if (!open_) return;
  where_.fiber()->registry().end_swap(staging_);
  for (auto& part : parts_) {
    if (!part.successor) continue;
    part.successor->dispose();
    part.successor->stage(nullptr);
  }
}

void Swap::place(std::shared_ptr<Fiber> old, std::shared_ptr<const Scope> scope,
                 PluginDefinition definition, nlohmann::json config, std::string name) {
  if (old) leaving_.push_back(old);
  planned_.push_back({std::move(old), std::move(scope), std::move(definition),
                      std::make_shared<const nlohmann::json>(std::move(config)), std::move(name)});
}

void Swap::remove(std::shared_ptr<Fiber> old) {
  leaving_.push_back(std::move(old));
}

bool Swap::covers(const Fiber& fiber) const {
  return std::any_of(leaving_.begin(), leaving_.end(),
                     [&](const auto& leaving) { return fiber.is_or_is_below(*leaving); });
}

// Whoever uses what goes away, and whoever uses what that one provides.
void Swap::plan_users() {
  Registry& registry = where_.fiber()->registry();
  for (std::size_t i = 0; i < leaving_.size(); ++i) {
    std::vector<const ServiceEntry*> provided;
    for (const Fiber* fiber : registry.fibers())
      if (fiber->is_or_is_below(*leaving_[i]))
        for (const auto* entry : registry.services_of(*fiber)) provided.push_back(entry);
    for (Fiber* user : registry.fibers()) {
      const bool running =
          user->state() == FiberState::active || user->state() == FiberState::loading;
      const bool uses = std::any_of(provided.begin(), provided.end(), [&](const auto* entry) {
        return user->needs(entry->key, entry->realm);
      });
      if (!running || !uses || user->root() || user->staging() || covers(*user)) continue;
      leaving_.push_back(user->shared_from_this());
      planned_.push_back({leaving_.back(), user->scope(), user->definition(),
                          std::make_shared<const nlohmann::json>(user->config()),
                          std::string(user->name())});
    }
  }
  // A child whose parent came to leave after it goes, and comes, with the parent.
  std::erase_if(planned_, [&](const Planned& planned) {
    auto parent = planned.old ? planned.old->parent() : nullptr;
    return parent && covers(*parent);
  });
  std::erase_if(leaving_, [&](const auto& fiber) {
    auto parent = fiber->parent();
    return parent && covers(*parent);
  });
}

Task<std::vector<Swap::Failure>> Swap::load(bool must_serve) {
  plan_users();
  Registry& registry = where_.fiber()->registry();
  for (const auto& fiber : leaving_) staging_.leaving.push_back(fiber.get());
  registry.begin_swap(staging_);
  open_ = true;
  std::vector<Failure> failures;
  for (auto& planned : planned_) {
    auto parent = planned.old ? planned.old->parent() : where_.fiber();
    auto successor = std::make_shared<Fiber>(parent->shared_registry(), parent, planned.scope,
                                             std::move(planned.definition), planned.config,
                                             std::move(planned.name));
    successor->stage(&staging_);
    try {
      successor->mount(planned.old ? planned.old->home() : where_.effects());
    } catch (...) {
      failures.push_back({successor, std::current_exception()});
    }
    parts_.push_back({planned.old, std::move(successor)});
  }
  for (const auto& fiber : leaving_)
    if (std::none_of(parts_.begin(), parts_.end(),
                     [&](const Part& part) { return part.old == fiber; }))
      parts_.push_back({fiber, nullptr});
  if (!failures.empty()) co_return failures;

  // One that settled early may begin to load again, when its service comes: until none is busy.
  for (bool again = true; again;) {
    again = false;
    for (Fiber* fiber : std::vector<Fiber*>(registry.fibers())) {
      if (fiber->staging() != &staging_ || !fiber->busy()) continue;
      again = true;
      auto settled = fiber->quiet();
      co_await settled;
      break;  // fibers may have come and gone
    }
  }
  for (const auto& part : parts_)
    if (part.successor && part.successor->state() == FiberState::failed)
      failures.push_back({part.successor, part.successor->error()});
  if (!must_serve || !failures.empty())
    co_return failures;  // who waits, waits for those that failed
  for (const auto& [old, successor] : parts_)
    if (successor && old && old->state() == FiberState::active &&
        successor->state() != FiberState::active)
      failures.push_back({successor, std::make_exception_ptr(waits(*successor))});
  co_return failures;
}

void Swap::commit() {
  for (const auto& [old, successor] : parts_)
    if (old) old->retire(successor.get());
  for (const auto& part : parts_)
    if (part.successor) part.successor->stage(nullptr);
  open_ = false;
  where_.fiber()->registry().commit_swap(staging_);
  for (const auto& part : parts_)
    if (part.successor) part.successor->refresh();
}

Task<> Swap::retire() {
  while (!leaving_.empty()) {
    Completion<> disposed = leaving_.back()->disposal();
    co_await disposed;
    leaving_.pop_back();
  }
}

Task<> Swap::abandon() {
  // Staged to the end, so that none of them turns to what it was to replace.
  for (std::size_t i = parts_.size(); i-- > 0;) {
    if (!parts_[i].successor) continue;
    Completion<> disposed = parts_[i].successor->disposal();
    co_await disposed;
    parts_[i].successor->stage(nullptr);
  }
  where_.fiber()->registry().end_swap(staging_);
  open_ = false;
}

std::shared_ptr<Fiber> Swap::successor_of(const std::shared_ptr<Fiber>& old) const {
  for (const auto& part : parts_)
    if (part.old == old) return part.successor;
  return old;
}

}  // namespace stockade
