// SPDX-License-Identifier: MIT
#include "framework/events.hpp"

#include <algorithm>

#include "framework/fiber.hpp"
#include "framework/registry.hpp"

namespace stockade {

AggregateError::AggregateError(std::string code, const std::string& text,
                               std::vector<std::exception_ptr> errors)
    : Error(std::move(code), text), errors_(std::move(errors)) {}

AggregateError::~AggregateError() = default;

void Listeners::add(std::string_view event, std::shared_ptr<detail::Listener> listener,
                    bool prepend) {
  auto& list = lists_[std::string(event)];
  if (!list)
    list = std::make_shared<detail::ListenerList>();
  else if (list.use_count() > 1)
    list = std::make_shared<detail::ListenerList>(*list);
  list->insert(prepend ? list->begin() : list->end(), std::move(listener));
}

void Listeners::remove(std::string_view event,
                       const std::shared_ptr<detail::Listener>& listener) noexcept {
  listener->removed = true;
  auto found = lists_.find(event);
  if (found == lists_.end()) return;
  auto& list = found->second;
  if (list.use_count() > 1) list = std::make_shared<detail::ListenerList>(*list);
  std::erase(*list, listener);
  if (list->empty()) lists_.erase(found);
}

std::shared_ptr<const detail::ListenerList> Listeners::of(std::string_view event) const noexcept {
  auto found = lists_.find(event);
  return found == lists_.end() ? nullptr : found->second;
}

namespace detail {

Dispatch::Dispatch(Registry& registry, DispatchMode mode, std::string_view event,
                   const void* payload, const EventFilter& filter)
    : registry_(registry), event_(event), filter_(filter) {
  const bool internal = event.substr(0, 9) == "internal/";
  if (!internal && registry.listeners().any(EventDispatched::event))
    emit(registry, EventDispatched{mode, event, payload, filter != nullptr}, {});
  snapshot_ = registry.listeners().of(event);
}

Listener* Dispatch::next() {
  if (!snapshot_) return nullptr;
  while (at_ < snapshot_->size()) {
    const std::shared_ptr<Listener>& listener = (*snapshot_)[at_++];
    if (listener->removed) continue;
    if (filter_ && !listener->global && !filter_(*listener->scope)) continue;
    // A successor that is still loading hears nothing; its predecessor does.
    if (registry_.swapping() && listener->owner->staging()) continue;
    if (listener->once) {
      registry_.listeners().remove(event_, listener);
      if (auto list = listener->list.lock())
        if (auto effect = listener->effect.lock()) list->forget(effect.get());
    }
    return listener.get();
  }
  return nullptr;
}

namespace {

Task<> keep_code([[maybe_unused]] std::shared_ptr<const void> code, Task<> task) {
  auto inner = std::move(task);  // goes before the code
  co_await inner;
}

}  // namespace

Task<> Dispatch::pending(const Listener& listener, ListenerCall& call) const {
  return keep_code(listener.owner->code(), std::move(*call.pending));
}

void start_detached(Registry& registry, Task<> task) {
  registry.tasks().start(std::move(task));
}

Task<> await_all(std::shared_ptr<Registry> registry, std::vector<Task<>> tasks) {
  auto all = all_settled(registry->loop(), std::move(tasks));
  std::vector<std::exception_ptr> errors = co_await all;
  std::erase(errors, nullptr);
  if (errors.empty()) co_return;
  std::string text;
  for (const auto& error : errors) text += (text.empty() ? "" : "; ") + describe(error);
  throw AggregateError("LISTENERS_FAILED", text, std::move(errors));
}

Task<> fail_with(std::exception_ptr error) {
  std::rethrow_exception(error);
  co_return;
}

}  // namespace detail

}  // namespace stockade
