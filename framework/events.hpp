// SPDX-License-Identifier: MIT
// Typed events. An event E names itself, `static constexpr std::string_view event = "…/1"`, and may
// have a `Result`, which its listeners answer with. Five ways to dispatch one:
//
//   emit       calls all, returns at once
//   parallel   starts all, ends when all have ended
//   serial     awaits one after the other until one answers
//   bail       the same without awaiting
//   waterfall  each listener wraps those after it, around an inner function
//
// A dispatch works on a snapshot of the listeners; one that is removed meanwhile is skipped.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "framework/api.hpp"
#include "framework/effects.hpp"
#include "framework/error.hpp"
#include "framework/task.hpp"

namespace stockade {

class Fiber;
class Registry;
struct Scope;

enum class DispatchMode { emit, serial, bail, waterfall };

// Which listeners hear a dispatch, by the scope that they were registered in. Empty: all.
using EventFilter = std::function<bool(const Scope&)>;

struct ListenOptions {
  ListenOptions(bool first = false, bool all = false) : prepend(first), global(all) {}  // NOLINT
  bool prepend;
  bool global;  // hears filtered dispatches too
};

// What listeners of `parallel` threw, in their order.
class STOCKADE_API AggregateError : public Error {
 public:
  AggregateError(std::string code, const std::string& text, std::vector<std::exception_ptr> errors);
  ~AggregateError() override;
  const std::vector<std::exception_ptr>& errors() const noexcept { return errors_; }

 private:
  std::vector<std::exception_ptr> errors_;
};

namespace detail {

template <class E, class = void>
struct EventResultOf {
  using type = std::monostate;
};
template <class E>
struct EventResultOf<E, std::void_t<typename E::Result>> {
  using type = typename E::Result;
};
template <class T>
struct is_task : std::false_type {};
template <class T>
struct is_task<Task<T>> : std::true_type {};

// One listener's part in one dispatch.
struct ListenerCall {
  const void* event;
  void* answer = nullptr;           // std::optional<Result>*, where the mode wants one
  const void* next = nullptr;       // of a waterfall
  std::optional<Task<>> pending{};  // of an asynchronous listener; writes the answer
};

struct Listener {
  std::function<void(ListenerCall&)> call;
  Fiber* owner = nullptr;
  std::shared_ptr<const Scope> scope;
  std::weak_ptr<EffectList> list;  // with the effect that removes it
  std::weak_ptr<Effect> effect;
  bool global = false;
  bool once = false;
  bool removed = false;
};

using ListenerList = std::vector<std::shared_ptr<Listener>>;

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};

}  // namespace detail

template <class E>
using EventResult = typename detail::EventResultOf<E>::type;

// The rest of a waterfall. Called a second time, it goes straight to the inner function.
template <class E>
using Next = std::function<EventResult<E>()>;

class STOCKADE_API Listeners {
 public:
  void add(std::string_view event, std::shared_ptr<detail::Listener> listener, bool prepend);
  void remove(std::string_view event, const std::shared_ptr<detail::Listener>& listener) noexcept;
  bool any(std::string_view event) const noexcept { return of(event) != nullptr; }
  // Null without any.
  std::shared_ptr<const detail::ListenerList> of(std::string_view event) const noexcept;

 private:
  // A list is replaced and not changed while a dispatch still uses it.
  std::unordered_map<std::string, std::shared_ptr<detail::ListenerList>, detail::StringHash,
                     std::equal_to<>>
      lists_;
};

namespace detail {

// One dispatch: its snapshot, and how far it has come.
class STOCKADE_API Dispatch {
 public:
  Dispatch(Registry& registry, DispatchMode mode, std::string_view event, const void* payload,
           const EventFilter& filter);
  Listener* next();  // null at the end; one-shot listeners are over before they are called
  // The rest of an asynchronous listener, keeping its code.
  Task<> pending(const Listener& listener, ListenerCall& call) const;

 private:
  Registry& registry_;
  std::string_view event_;
  const EventFilter& filter_;
  std::shared_ptr<const ListenerList> snapshot_;
  std::size_t at_ = 0;
};

STOCKADE_API void start_detached(Registry& registry, Task<> task);
STOCKADE_API Task<> await_all(std::shared_ptr<Registry> registry, std::vector<Task<>> tasks);
STOCKADE_API Task<> fail_with(std::exception_ptr error);

template <class Result, class Answer>
void store_answer(std::optional<Result>* out, Answer&& answer) {
  if constexpr (std::is_convertible_v<Answer&&, std::optional<Result>>) {
    if (out) *out = std::forward<Answer>(answer);
  } else {
    static_assert(std::is_same_v<Result, std::monostate>, "not what the event's Result is");
  }
}

template <class Result, class Answer>
Task<> deliver(Task<Answer> task, std::optional<Result>* out) {
  if constexpr (std::is_void_v<Answer>) {
    co_await task;
  } else {
    Answer answer = co_await task;
    store_answer(out, std::move(answer));
  }
}

template <class E, class F>
std::function<void(ListenerCall&)> erase_listener(F listener) {
  using Result = EventResult<E>;
  return [listener = std::move(listener)](ListenerCall& call) mutable {
    const E& event = *static_cast<const E*>(call.event);
    auto* out = static_cast<std::optional<Result>*>(call.answer);
    if constexpr (std::is_invocable_v<F&, const E&, const Next<E>&>) {
      const Next<E> nothing = [] { return Result{}; };
      const Next<E>& next = call.next ? *static_cast<const Next<E>*>(call.next) : nothing;
      if constexpr (std::is_void_v<std::invoke_result_t<F&, const E&, const Next<E>&>>) {
        listener(event, next);
        if (out) out->emplace();
      } else {
        store_answer(out, listener(event, next));
      }
    } else if constexpr (is_task<std::invoke_result_t<F&, const E&>>::value) {
      // In two steps: the answer outlives the task only where the dispatch awaits it.
      call.pending.emplace(deliver(listener(event), out));
    } else if constexpr (std::is_void_v<std::invoke_result_t<F&, const E&>>) {
      listener(event);
    } else {
      store_answer(out, listener(event));
    }
  };
}

template <class E>
void emit(Registry& registry, const E& event, const EventFilter& filter) {
  Dispatch dispatch(registry, DispatchMode::emit, E::event, &event, filter);
  while (Listener* listener = dispatch.next()) {
    ListenerCall call{&event};
    listener->call(call);
    if (call.pending) start_detached(registry, dispatch.pending(*listener, call));
  }
}

template <class E>
Task<> parallel(std::shared_ptr<Registry> registry, E event, EventFilter filter) {
  Dispatch dispatch(*registry, DispatchMode::emit, E::event, &event, filter);
  std::vector<Task<>> tasks;
  while (Listener* listener = dispatch.next()) {
    ListenerCall call{&event};
    try {
      listener->call(call);
      if (call.pending) tasks.push_back(dispatch.pending(*listener, call));
    } catch (...) {
      tasks.push_back(fail_with(std::current_exception()));
    }
  }
  auto all = await_all(registry, std::move(tasks));
  co_await all;
}

template <class E>
Task<std::optional<EventResult<E>>> serial(std::shared_ptr<Registry> registry, E event,
                                           EventFilter filter) {
  Dispatch dispatch(*registry, DispatchMode::serial, E::event, &event, filter);
  std::optional<EventResult<E>> answer;
  while (Listener* listener = dispatch.next()) {
    ListenerCall call{&event, &answer};
    listener->call(call);
    if (call.pending) {
      auto pending = dispatch.pending(*listener, call);
      co_await pending;
    }
    if (answer) break;
  }
  co_return answer;
}

template <class E>
std::optional<EventResult<E>> bail(Registry& registry, const E& event, const EventFilter& filter) {
  Dispatch dispatch(registry, DispatchMode::bail, E::event, &event, filter);
  std::optional<EventResult<E>> answer;
  while (Listener* listener = dispatch.next()) {
    ListenerCall call{&event, &answer};
    listener->call(call);
    if (answer) break;
  }
  return answer;
}

template <class E>
EventResult<E> waterfall(Registry& registry, const E& event, const Next<E>& inner,
                         const EventFilter& filter) {
  Dispatch dispatch(registry, DispatchMode::waterfall, E::event, &event, filter);
  Next<E> next = [&]() -> EventResult<E> {
    while (Listener* listener = dispatch.next()) {
      std::optional<EventResult<E>> answer;
      ListenerCall call{&event, &answer, &next};
      listener->call(call);
      if (answer) return *answer;
    }
    return inner();
  };
  return next();
}

}  // namespace detail

// What the framework itself tells; such dispatches are not told to EventDispatched.

// Before each dispatch. `payload` points to the event, whose type `name` tells.
struct EventDispatched {
  static constexpr std::string_view event = "internal/dispatch";
  DispatchMode mode;  // `emit` for a parallel one
  std::string_view name;
  const void* payload;
  bool filtered;
};
// While a fiber is mounted. A listener that throws undoes the mounting; one may add needs
// (`Fiber::require`), which gate the first load.
struct FiberMounted {
  static constexpr std::string_view event = "internal/mount";
  Fiber& fiber;
};
struct FiberDisposing {
  static constexpr std::string_view event = "internal/dispose";
  Fiber& fiber;
};
// A service has a new provider or value, or (null) none.
struct ServiceChanged {
  static constexpr std::string_view event = "internal/service";
  std::string_view key;
  std::uint64_t realm;
  std::shared_ptr<void> value;
};

}  // namespace stockade
