// SPDX-License-Identifier: MIT
#include "framework/effects.hpp"

#include <algorithm>

#include "framework/error.hpp"
#include "framework/fiber.hpp"

namespace stockade {

namespace {

// Takes the effect out of its list however the undo ends, also when its caller is dropped.
class Finish {
 public:
  Finish(EffectList& list, std::shared_ptr<Effect> effect)
      : list_(list), effect_(std::move(effect)) {}
  Finish(const Finish&) = delete;
  Finish& operator=(const Finish&) = delete;
  ~Finish() {
    list_.forget(effect_.get());
    effect_->undoing->settle();
  }

 private:
  EffectList& list_;
  std::shared_ptr<Effect> effect_;
};

// Effects are undone in reverse, so the one that is looked for is near the end.
auto find(const std::vector<std::shared_ptr<Effect>>& effects, const Effect* wanted) {
  auto found = std::find_if(effects.rbegin(), effects.rend(),
                            [wanted](const auto& effect) { return effect.get() == wanted; });
  return found == effects.rend() ? effects.end() : std::prev(found.base());
}

}  // namespace

std::shared_ptr<Effect> EffectList::add(Effect effect) {
  return effects_.emplace_back(std::make_shared<Effect>(std::move(effect)));
}

Task<> EffectList::undo(std::shared_ptr<Effect> effect) {
  if (effect->undoing || find(effects_, effect.get()) == effects_.end()) co_return;
  effect->undoing.emplace(owner_.registry().loop());
  Finish finish(*this, effect);
  if (effect->child) {
    Completion<> disposed = effect->child->disposal();
    co_await disposed;
  } else if (effect->steps) {
    auto undoing = effect->steps->undo_all();
    co_await undoing;
  } else {
    auto undoing = effect->undo();
    co_await undoing;
  }
}

Task<> EffectList::undo_all() {
  while (setting_up()) {
    Completion<> ended = *setup_;
    co_await ended;
  }
  auto undoing = undo_steps();
  co_await undoing;
}

Task<> EffectList::undo_steps() {
  while (!effects_.empty()) {
    std::shared_ptr<Effect> last = effects_.back();
    if (last->undoing) {
      Completion<> undone = *last->undoing;
      co_await undone;
      continue;
    }
    std::exception_ptr error;
    try {
      auto undoing = undo(last);
      co_await undoing;
    } catch (...) {
      error = std::current_exception();
    }
    if (error)
      owner_.registry().log().error(std::string(owner_.name()) + ": undoing " + last->label +
                                    " failed: " + describe(error));
  }
}

void EffectList::forget(const Effect* effect) noexcept {
  if (auto found = find(effects_, effect); found != effects_.end()) effects_.erase(found);
}

void EffectList::replace(const Effect* old, const Effect* successor) {
  auto at = find(effects_, successor);
  if (at == effects_.end()) return;
  std::shared_ptr<Effect> moved = *at;
  effects_.erase(at);
  auto place = find(effects_, old);
  if (place == effects_.end())
    effects_.push_back(std::move(moved));
  else
    effects_[static_cast<std::size_t>(place - effects_.begin())] = std::move(moved);
}

std::vector<EffectInfo> EffectList::list() const {
  std::vector<EffectInfo> out;
  for (const auto& effect : effects_)
    if (!effect->undoing)
      out.push_back(
          {effect->label, effect->steps ? effect->steps->list() : std::vector<EffectInfo>{}});
  return out;
}

void EffectList::begin_setup() {
  setup_.emplace(owner_.registry().loop());
}

void EffectList::end_setup(std::exception_ptr error) {
  setup_error_ = std::move(error);
  setup_->settle();
}

Task<> EffectList::setup_ended() {
  while (setting_up()) {
    Completion<> ended = *setup_;
    co_await ended;
  }
  if (setup_error_) std::rethrow_exception(setup_error_);
}

}  // namespace stockade
