// SPDX-License-Identifier: MIT
// Completion<T>: a one-shot value that any number of coroutines can wait for.
#pragma once

#include <coroutine>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "framework/loop.hpp"

namespace stockade {

// Copies share one state. Waiters resume on a later turn, in the order in which they began to wait;
// a waiter whose coroutine is dropped is forgotten. `co_await completion` yields a const T&.
template <class T = std::monostate>
class Completion {
  struct Waiter {
    std::coroutine_handle<> handle;
  };
  struct State {
    explicit State(Loop& l) : loop(l) {}
    Loop& loop;
    std::optional<T> value;
    std::vector<Waiter*> waiters;
  };

 public:
  explicit Completion(Loop& loop) : state_(std::make_shared<State>(loop)) {}

  bool settled() const noexcept { return state_->value.has_value(); }
  const T& value() const { return *state_->value; }

  // The first value stands.
  void settle(T value = {}) const {
    if (settled()) return;
    state_->value.emplace(std::move(value));
    if (state_->waiters.empty()) return;
    state_->loop.post([state = state_] {
      while (!state->waiters.empty()) {
        Waiter* first = state->waiters.front();
        state->waiters.erase(state->waiters.begin());
        std::exchange(first->handle, {}).resume();
      }
    });
  }

  auto operator co_await() const {
    struct Awaiter : Waiter {
      explicit Awaiter(std::shared_ptr<State> s) : state(std::move(s)) {}
      Awaiter(const Awaiter&) = delete;
      ~Awaiter() {
        if (this->handle) std::erase(state->waiters, this);
      }
      bool await_ready() const noexcept { return state->value.has_value(); }
      void await_suspend(std::coroutine_handle<> waiting) {
        this->handle = waiting;
        state->waiters.push_back(this);
      }
      const T& await_resume() const noexcept { return *state->value; }
      std::shared_ptr<State> state;
    };
    return Awaiter{state_};
  }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace stockade
