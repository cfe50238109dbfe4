// SPDX-License-Identifier: MIT
// What one tree of contexts shares: the loop, the services that are provided, the listeners, the
// tasks that drive fibers. Created with the root context; a plugin reaches it through its Context.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/api.hpp"
#include "framework/log.hpp"
#include "framework/loop.hpp"

namespace stockade {

class Fiber;

// Which provider of a service a context sees: scopes that isolate a key get a realm of their own.
using Realm = std::uint64_t;
inline constexpr Realm kRootRealm = 0;

// Immutable; contexts share it. Keys that are absent are seen in the root realm.
struct Scope {
  std::map<std::string, Realm, std::less<>> realms;
  Realm realm(std::string_view key) const {
    auto found = realms.find(key);
    return found == realms.end() ? kRootRealm : found->second;
  }
};

struct ServiceEntry {
  std::string key;
  Realm realm = kRootRealm;
  std::uint64_t serial = 0;  // tells a replaced provider from the one before
  Fiber* provider = nullptr;
  std::shared_ptr<void> value;  // keeps the provider's object and its code
};

struct Listener {
  std::uint64_t id = 0;
  std::string event;
  Fiber* owner = nullptr;
  std::uint64_t effect = 0;  // of the owner's, which undoes this listener
  bool once = false;
  std::shared_ptr<const std::function<void(const void*)>> callback;  // a copy would copy its state
};

class STOCKADE_API Registry {
 public:
  Registry(Loop& loop, Log log);

  Loop& loop() noexcept { return loop_; }
  const Log& log() const noexcept { return log_; }
  TaskScope& tasks() noexcept { return tasks_; }
  std::uint64_t next_id() noexcept { return ++last_id_; }

  // Throws Error `SERVICE_TAKEN`.
  void add_service(ServiceEntry entry);
  void remove_service(std::string_view key, Realm realm);
  // The entry whatever its provider's state; null without one.
  const ServiceEntry* service(std::string_view key, Realm realm) const;
  // Null unless the provider is ACTIVE.
  const ServiceEntry* available_service(std::string_view key, Realm realm) const;
  std::vector<const ServiceEntry*> services_of(const Fiber& provider) const;

  void add_listener(Listener listener, bool prepend);
  void remove_listener(std::uint64_t id);
  // Calls a snapshot of the listeners; one that was removed meanwhile is skipped.
  void emit(std::string_view event, const void* payload);

  void add_fiber(Fiber& fiber);
  void remove_fiber(Fiber& fiber);
  // Lets every fiber that needs `key` look again.
  void service_changed(std::string_view key, Realm realm);
  void services_changed(const Fiber& provider);

 private:
  Loop& loop_;
  Log log_;
  std::uint64_t last_id_ = 0;
  std::map<std::pair<std::string, Realm>, ServiceEntry> services_;
  std::vector<Listener> listeners_;
  std::vector<Fiber*> fibers_;
  TaskScope tasks_;  // last: its tasks use the rest
};

}  // namespace stockade
