// SPDX-License-Identifier: MIT
#include "framework/registry.hpp"

#include <algorithm>

#include "framework/error.hpp"
#include "framework/fiber.hpp"

namespace stockade {

namespace {

bool leaves(const Staging& staging, const Fiber& fiber) {
  return std::any_of(staging.leaving.begin(), staging.leaving.end(),
                     [&](const Fiber* leaving) { return fiber.is_or_is_below(*leaving); });
}

}  // namespace

Registry::Registry(Loop& loop, Log log)
    : loop_(loop), log_(std::move(log)), tasks_(loop, [this](std::exception_ptr error) {
        log_.error("a task failed: " + describe(error));
      }) {}

Realm Registry::realm_of_label(std::string_view label) {
  auto found = labels_.find(label);
  if (found == labels_.end()) found = labels_.emplace(label, next_id()).first;
  return found->second;
}

std::uint64_t Registry::add_service(ServiceEntry entry) {
  entry.staging = swapping() ? entry.provider->staging() : nullptr;
  auto& entries = services_[entry.key];
  for (const auto& other : entries) {
    if (other->realm != entry.realm) continue;
    const bool replaces =
        entry.staging && !other->staging && leaves(*entry.staging, *other->provider);
    const bool apart = other->staging && other->staging != entry.staging;
    if (!replaces && !apart)
      throw Error("SERVICE_TAKEN",
                  "service \"" + entry.key + "\" has been registered at <" +
                      std::string(other->provider->name()) + ">",
                  entry.key);
  }
  entry.serial = next_id();
  const ServiceEntry& added =
      *entries.emplace_back(std::make_unique<ServiceEntry>(std::move(entry)));
  const std::uint64_t serial = added.serial;
  // One that is loading is told of when it is ACTIVE.
  if (added.provider->state() == FiberState::active) announce(added);
  return serial;
}

void Registry::remove_service(std::string_view key, std::uint64_t serial) {
  auto found = services_.find(key);
  if (found == services_.end()) return;
  auto& entries = found->second;
  auto entry = std::find_if(entries.begin(), entries.end(),
                            [serial](const auto& e) { return e->serial == serial; });
  if (entry == entries.end()) return;
  // The value may be the last reference to objects whose destructors look services up.
  std::unique_ptr<ServiceEntry> gone = std::move(*entry);
  entries.erase(entry);
  if (entries.empty()) services_.erase(found);
  // One that is not ACTIVE was told of when it ceased to be.
  if (!gone->staging && gone->provider->state() == FiberState::active)
    tell(ServiceChanged{gone->key, gone->realm, nullptr});
  service_changed(gone->key, gone->realm);
}

const ServiceEntry* Registry::service(std::string_view key, Realm realm,
                                      const Fiber& viewer) const {
  auto found = services_.find(key);
  if (found == services_.end()) return nullptr;
  const Staging* staging = swapping() ? viewer.staging() : nullptr;
  const ServiceEntry* live = nullptr;
  for (const auto& entry : found->second) {
    if (entry->realm != realm) continue;
    if (!entry->staging)
      live = entry.get();
    else if (entry->staging == staging)
      return entry.get();
  }
  return live && staging && leaves(*staging, *live->provider) ? nullptr : live;
}

bool Registry::available(const ServiceEntry& entry) const {
  return entry.provider->state() == FiberState::active && offered(entry);
}

bool Registry::offered(const ServiceEntry& entry) const {
  if (!entry.available) return true;
  try {
    return entry.available();
  } catch (...) {
    log_.named(entry.provider->name())
        .error("whether \"" + entry.key +
               "\" is available cannot be told: " + describe(std::current_exception()));
    return false;
  }
}

std::vector<const ServiceEntry*> Registry::services_of(const Fiber& provider) const {
  std::vector<const ServiceEntry*> out;
  for (const auto& [key, entries] : services_)
    for (const auto& entry : entries)
      if (entry->provider == &provider) out.push_back(entry.get());
  std::sort(out.begin(), out.end(),
            [](const auto* a, const auto* b) { return a->serial < b->serial; });
  return out;
}

void Registry::set_service(std::string_view key, Realm realm, const Fiber& provider,
                           std::shared_ptr<void> value) {
  auto* entry = const_cast<ServiceEntry*>(service(key, realm, provider));
  if (!entry)
    throw Error("SERVICE_NOT_PROVIDED",
                "cannot set property \"" + std::string(key) + "\" without provide",
                std::string(key));
  if (entry->provider != &provider)
    throw Error("SERVICE_FOREIGN",
                "cannot set property \"" + std::string(key) + "\" in multiple fibers",
                std::string(key));
  std::shared_ptr<void> old = std::exchange(entry->value, std::move(value));
  if (!entry->staging) tell(ServiceChanged{entry->key, realm, entry->value});
}

void Registry::add_fiber(Fiber& fiber) {
  fibers_.push_back(&fiber);
}

void Registry::remove_fiber(Fiber& fiber) noexcept {
  // Near the end, as fibers go in reverse.
  auto found = std::find(fibers_.rbegin(), fibers_.rend(), &fiber);
  if (found != fibers_.rend()) fibers_.erase(std::prev(found.base()));
}

void Registry::service_changed(std::string_view key, Realm realm) {
  for (Fiber* fiber : fibers_)
    if (fiber->needs(key, realm)) fiber->refresh();
}

void Registry::services_changed(const Fiber& provider) {
  if (services_.empty()) return;
  for (const ServiceEntry* entry : services_of(provider)) announce(*entry);
}

void Registry::announce(const ServiceEntry& entry) {
  const std::string key = entry.key;  // a listener may withdraw the service
  const Realm realm = entry.realm;
  if (!entry.staging) tell(ServiceChanged{key, realm, available(entry) ? entry.value : nullptr});
  service_changed(key, realm);
}

void Registry::begin_swap(const Staging& staging) {
  stagings_.push_back(&staging);
}

void Registry::commit_swap(const Staging& staging) {
  std::map<std::pair<std::string, Realm>, std::shared_ptr<void>> changed;
  std::vector<std::unique_ptr<ServiceEntry>> gone;  // until all else is in place
  for (auto& [key, entries] : services_) {
    for (auto& entry : entries) {
      if (entry->staging == &staging) {
        entry->staging = nullptr;
        changed[{key, entry->realm}] = entry->value;
      } else if (!entry->staging && leaves(staging, *entry->provider)) {
        changed.try_emplace({key, entry->realm}, nullptr);
        gone.push_back(std::move(entry));
      }
    }
    std::erase(entries, nullptr);
  }
  end_swap(staging);
  for (const auto& [place, value] : changed) {
    tell(ServiceChanged{place.first, place.second, value});
    service_changed(place.first, place.second);
  }
}

void Registry::end_swap(const Staging& staging) {
  std::erase(stagings_, &staging);
}

}  // namespace stockade
