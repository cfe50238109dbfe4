// SPDX-License-Identifier: MIT
// A swap puts new fibers in the place of running ones without a moment in which either is missing.
//
// Successors load beside those that they replace: what they provide is seen by each other alone,
// and their listeners hear nothing. Fibers that inject what a leaving one provides get a successor
// too, built from their own definition. When all have loaded, one step puts everything in place;
// then those that leave are disposed, users before providers. When one fails, the successors are
// disposed and nothing else has happened.
//
// For that while a plugin runs twice. What can exist only once (a listening socket, a lock) belongs
// into its first use, or behind a name of its own.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/api.hpp"
#include "framework/context.hpp"

namespace stockade {

class STOCKADE_API Swap {
 public:
  explicit Swap(Context where);  // where new fibers are mounted
  ~Swap();                       // abandons what is not committed
  Swap(const Swap&) = delete;
  Swap& operator=(const Swap&) = delete;

  struct Part {
    std::shared_ptr<Fiber> old;        // null for a new one
    std::shared_ptr<Fiber> successor;  // null for one that is removed
  };
  struct Failure {
    std::shared_ptr<Fiber> fiber;
    std::exception_ptr error;
  };

  // What is to change. `old` may be null, and must have been mounted in the same place.
  void place(std::shared_ptr<Fiber> old, std::shared_ptr<const Scope> scope,
             PluginDefinition definition, nlohmann::json config, std::string name);
  void remove(std::shared_ptr<Fiber> old);

  // Mounts and loads all; ends when none is busy. The failures, in the order of place(); a part
  // that `must_serve` and comes to wait for a service, where its predecessor was ACTIVE, is one.
  Task<std::vector<Failure>> load(bool must_serve);
  void commit();
  Task<> retire();   // after commit: ends when all that leave are gone
  Task<> abandon();  // instead of commit: ends when all successors are gone

  // Of a fiber before the swap; itself where it was not part of it.
  std::shared_ptr<Fiber> successor_of(const std::shared_ptr<Fiber>& old) const;
  const std::vector<Part>& parts() const noexcept { return parts_; }

 private:
  struct Planned {
    std::shared_ptr<Fiber> old;
    std::shared_ptr<const Scope> scope;
    PluginDefinition definition;
    std::shared_ptr<const nlohmann::json> config;
    std::string name;
  };
  void plan_users();
  bool covers(const Fiber& fiber) const;

  Context where_;
  Staging staging_;
  std::vector<Planned> planned_;
  std::vector<std::shared_ptr<Fiber>> leaving_;
  std::vector<Part> parts_;
  bool open_ = false;
};

}  // namespace stockade
