// SPDX-License-Identifier: MIT
// What one tree of contexts shares: the loop, the services that are provided, the listeners, the
// fibers and the tasks that drive them. Created with the root context; a plugin reaches it through
// its Context.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/api.hpp"
#include "framework/events.hpp"
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
  // What users in this scope ask of a service, outermost first.
  std::vector<std::pair<std::string, std::shared_ptr<const nlohmann::json>>> intercepts;

  Realm realm(std::string_view key) const {
    if (realms.empty()) return kRootRealm;
    auto found = realms.find(key);
    return found == realms.end() ? kRootRealm : found->second;
  }
};

// What is being put in place of running fibers; see swap.hpp. Until it is committed, only its own
// fibers see what they provide, and to them those that leave are gone already.
struct Staging {
  std::vector<const Fiber*> leaving;
};

struct ServiceEntry {
  std::string key;
  Realm realm = kRootRealm;
  std::uint64_t serial = 0;  // tells a replaced provider from the one before
  Fiber* provider = nullptr;
  std::shared_ptr<void> value;      // keeps the provider's object and its code
  std::function<bool()> available;  // empty: while the provider is ACTIVE
  const Staging* staging = nullptr;
};

class STOCKADE_API Registry {
 public:
  Registry(Loop& loop, Log log);

  Loop& loop() noexcept { return loop_; }
  const Log& log() const noexcept { return log_; }
  TaskScope& tasks() noexcept { return tasks_; }
  Listeners& listeners() noexcept { return listeners_; }
  std::uint64_t next_id() noexcept { return ++last_id_; }
  Realm realm_of_label(std::string_view label);  // one for equal labels

  // Returns the entry's serial. Throws Error `SERVICE_TAKEN`.
  std::uint64_t add_service(ServiceEntry entry);
  void remove_service(std::string_view key, std::uint64_t serial);
  // The entry that `viewer` sees, whatever its provider's state; null without one.
  const ServiceEntry* service(std::string_view key, Realm realm, const Fiber& viewer) const;
  // Whether others than its provider may use it now.
  bool available(const ServiceEntry& entry) const;
  bool offered(const ServiceEntry& entry) const;  // whether its predicate says yes
  std::vector<const ServiceEntry*> services_of(const Fiber& provider) const;
  // Replaces what the provider gives, without a reload of its users. Throws Error
  // `SERVICE_NOT_PROVIDED`, or `SERVICE_FOREIGN` where another fiber provides it.
  void set_service(std::string_view key, Realm realm, const Fiber& provider,
                   std::shared_ptr<void> value);

  void add_fiber(Fiber& fiber);
  void remove_fiber(Fiber& fiber) noexcept;
  const std::vector<Fiber*>& fibers() const noexcept { return fibers_; }
  // Lets every fiber that needs `key` look again.
  void service_changed(std::string_view key, Realm realm);
  void services_changed(const Fiber& provider);
  // Emits, logging instead of throwing: for what has already happened.
  template <class E>
  void tell(const E& event) {
    if (!listeners_.any(E::event)) return;
    try {
      detail::emit(*this, event, {});
    } catch (...) {
      log_.error("a listener of " + std::string(E::event) +
                 " failed: " + describe(std::current_exception()));
    }
  }

  void begin_swap(const Staging& staging);
  // What is staged takes the place of what leaves, in one step.
  void commit_swap(const Staging& staging);
  void end_swap(const Staging& staging);
  bool swapping() const noexcept { return !stagings_.empty(); }

 private:
  void announce(const ServiceEntry& entry);

  using Entries = std::vector<std::unique_ptr<ServiceEntry>>;
  Loop& loop_;
  Log log_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::string, Entries, detail::StringHash, std::equal_to<>> services_;
  std::map<std::string, Realm, std::less<>> labels_;
  Listeners listeners_;
  std::vector<Fiber*> fibers_;
  std::vector<const Staging*> stagings_;
  TaskScope tasks_;  // last: its tasks use the rest
};

}  // namespace stockade
