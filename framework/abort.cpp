// SPDX-License-Identifier: MIT
#include "framework/abort.hpp"

#include <map>
#include <utility>

namespace stockade {

namespace detail {
struct AbortState {
  bool aborted = false;
  std::string reason;
  unsigned long next = 1;
  std::map<unsigned long, std::function<void()>> listeners;
};
}  // namespace detail

AbortSubscription::AbortSubscription(std::shared_ptr<detail::AbortState> state, unsigned long id)
    : state_(std::move(state)), id_(id) {}
AbortSubscription::AbortSubscription(AbortSubscription&& other) noexcept
    : state_(std::move(other.state_)), id_(other.id_) {}
AbortSubscription& AbortSubscription::operator=(AbortSubscription&& other) noexcept {
  if (this != &other) {
    reset();
    state_ = std::move(other.state_);
    id_ = other.id_;
  }
  return *this;
}
AbortSubscription::~AbortSubscription() {
  reset();
}
void AbortSubscription::reset() noexcept {
  if (auto state = std::move(state_)) state->listeners.erase(id_);
}

AbortSignal::AbortSignal(std::shared_ptr<detail::AbortState> state) : state_(std::move(state)) {}
bool AbortSignal::aborted() const noexcept {
  return state_ && state_->aborted;
}
std::string AbortSignal::reason() const {
  return state_ && !state_->reason.empty() ? state_->reason : "aborted";
}
AbortSubscription AbortSignal::on_abort(std::function<void()> listener) const {
  if (!state_ || state_->aborted) return {};
  unsigned long id = state_->next++;
  state_->listeners.emplace(id, std::move(listener));
  return AbortSubscription(state_, id);
}

AbortController::AbortController() : state_(std::make_shared<detail::AbortState>()) {}
AbortSignal AbortController::signal() const {
  return AbortSignal(state_);
}
void AbortController::abort(std::string reason) {
  if (state_->aborted) return;
  state_->aborted = true;
  state_->reason = std::move(reason);
  // A listener may unsubscribe others, or let go of this controller.
  auto state = state_;
  while (!state->listeners.empty()) {
    auto first = state->listeners.extract(state->listeners.begin());
    first.mapped()();
  }
}

}  // namespace stockade
