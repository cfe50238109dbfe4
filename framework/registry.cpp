// SPDX-License-Identifier: MIT
#include "framework/registry.hpp"

#include <algorithm>

#include "framework/error.hpp"
#include "framework/fiber.hpp"

namespace stockade {

Registry::Registry(Loop& loop, Log log)
    : loop_(loop), log_(std::move(log)), tasks_(loop, [this](std::exception_ptr error) {
        log_.error("a fiber's task failed: " + describe(error));
      }) {}

void Registry::add_service(ServiceEntry entry) {
  auto place = std::make_pair(entry.key, entry.realm);
  if (auto found = services_.find(place); found != services_.end())
    throw Error("SERVICE_TAKEN",
                "service \"" + entry.key + "\" has been registered at <" +
                    std::string(found->second.provider->name()) + ">",
                entry.key);
  entry.serial = next_id();
  services_.emplace(place, std::move(entry));
  service_changed(place.first, place.second);
}

void Registry::remove_service(std::string_view key, Realm realm) {
  // The value may be the last reference to objects whose destructors look services up.
  auto node = services_.extract(std::make_pair(std::string(key), realm));
  if (!node.empty()) service_changed(key, realm);
}

const ServiceEntry* Registry::service(std::string_view key, Realm realm) const {
  auto found = services_.find(std::make_pair(std::string(key), realm));
  return found == services_.end() ? nullptr : &found->second;
}

const ServiceEntry* Registry::available_service(std::string_view key, Realm realm) const {
  const ServiceEntry* entry = service(key, realm);
  return entry && entry->provider->state() == FiberState::active ? entry : nullptr;
}

std::vector<const ServiceEntry*> Registry::services_of(const Fiber& provider) const {
  std::vector<const ServiceEntry*> out;
  for (const auto& [place, entry] : services_)
    if (entry.provider == &provider) out.push_back(&entry);
  return out;
}

void Registry::add_listener(Listener listener, bool prepend) {
  listeners_.insert(prepend ? listeners_.begin() : listeners_.end(), std::move(listener));
}

void Registry::remove_listener(std::uint64_t id) {
  std::erase_if(listeners_, [id](const Listener& l) { return l.id == id; });
}

void Registry::emit(std::string_view event, const void* payload) {
  std::vector<Listener> snapshot;
  for (const auto& listener : listeners_)
    if (listener.event == event) snapshot.push_back(listener);
  for (const auto& listener : snapshot) {
    auto still = std::find_if(listeners_.begin(), listeners_.end(),
                              [&](const Listener& l) { return l.id == listener.id; });
    if (still == listeners_.end()) continue;
    if (listener.once) {  // over before its body, which may emit again
      listeners_.erase(still);
      listener.owner->forget_effect(listener.effect);
    }
    (*listener.callback)(payload);
  }
}

void Registry::add_fiber(Fiber& fiber) {
  fibers_.push_back(&fiber);
}
void Registry::remove_fiber(Fiber& fiber) {
  std::erase(fibers_, &fiber);
}

void Registry::service_changed(std::string_view key, Realm realm) {
  for (Fiber* fiber : fibers_)
    if (fiber->needs(key, realm)) fiber->refresh();
}

void Registry::services_changed(const Fiber& provider) {
  for (const auto& [place, entry] : services_)
    if (entry.provider == &provider) service_changed(place.first, place.second);
}

}  // namespace stockade
