// SPDX-License-Identifier: MIT
// Task<T>: a lazy coroutine. It starts when it is awaited, and dropping it cancels it.
//
// Only a *named* task can be awaited: g++ 12 destroys some temporaries of a co_await expression
// twice, and the deleted `operator co_await() &&` turns each such expression into a compile error.
// For the same reason: parameters by value, no capturing lambda coroutines, no co_await inside a
// condition with && or ||, no structured binding of a co_await.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace stockade {

template <class T = void>
class Task;

namespace detail {

struct PromiseBase {
  std::coroutine_handle<> waiter = std::noop_coroutine();
  std::exception_ptr error;

  struct Final {
    Final() noexcept {}
    bool await_ready() noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> done) noexcept {
      return done.promise().waiter;
    }
    void await_resume() noexcept {}
  };
  std::suspend_always initial_suspend() noexcept { return {}; }
  Final final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { error = std::current_exception(); }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object() noexcept;
  template <class U = T>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() {
    if (error) std::rethrow_exception(error);
    return std::move(*value);
  }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object() noexcept;
  void return_void() noexcept {}
  void take() {
    if (error) std::rethrow_exception(error);
  }
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;

  explicit Task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, {});
    }
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  auto operator co_await() && = delete;
  auto operator co_await() & noexcept {
    struct Awaiter {
      explicit Awaiter(std::coroutine_handle<promise_type> h) noexcept : handle(h) {}
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) noexcept {
        handle.promise().waiter = waiter;
        return handle;
      }
      T await_resume() { return handle.promise().take(); }
      std::coroutine_handle<promise_type> handle;
    };
    return Awaiter{handle_};
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

namespace detail {
template <class T>
Task<T> Promise<T>::get_return_object() noexcept {
  return Task<T>{std::coroutine_handle<Promise>::from_promise(*this)};
}
inline Task<void> Promise<void>::get_return_object() noexcept {
  return Task<void>{std::coroutine_handle<Promise>::from_promise(*this)};
}
}  // namespace detail

}  // namespace stockade
