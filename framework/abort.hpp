// SPDX-License-Identifier: MIT
// Cancellation that travels with a call: the caller holds the controller, the work a signal.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "framework/api.hpp"

namespace stockade {

namespace detail {
struct AbortState;
}

// Unsubscribes when it goes.
class STOCKADE_API AbortSubscription {
 public:
  AbortSubscription() = default;
  AbortSubscription(std::shared_ptr<detail::AbortState> state, unsigned long id);
  AbortSubscription(AbortSubscription&& other) noexcept;
  AbortSubscription& operator=(AbortSubscription&& other) noexcept;
  ~AbortSubscription();

 private:
  void reset() noexcept;
  std::shared_ptr<detail::AbortState> state_;
  unsigned long id_ = 0;
};

// A default-constructed signal never aborts. Copies share one state. Loop thread only.
class STOCKADE_API AbortSignal {
 public:
  AbortSignal() = default;
  explicit AbortSignal(std::shared_ptr<detail::AbortState> state);

  bool aborted() const noexcept;
  std::string reason() const;  // "aborted" where the controller gave none
  // `listener` runs inside AbortController::abort, or never when the signal is already aborted:
  // ask aborted() first.
  [[nodiscard]] AbortSubscription on_abort(std::function<void()> listener) const;

 private:
  std::shared_ptr<detail::AbortState> state_;
};

class STOCKADE_API AbortController {
 public:
  AbortController();
  AbortSignal signal() const;
  void abort(std::string reason = {});  // the first cause wins, a second call does nothing

 private:
  std::shared_ptr<detail::AbortState> state_;
};

}  // namespace stockade
