// SPDX-License-Identifier: MIT
// Effects: every side effect comes with its undo, and a list of them is undone in strict reverse,
// each awaited. A fiber owns one list; an effect that is made of steps owns a list of its own.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/api.hpp"
#include "framework/completion.hpp"
#include "framework/task.hpp"

namespace stockade {

class EffectList;
class Fiber;

using Undo = std::function<Task<>()>;

struct Effect {
  std::string label;
  Undo undo;                            // or
  std::shared_ptr<Fiber> child;         // disposed to undo it, or
  std::shared_ptr<EffectList> steps;    // undone to undo it
  std::optional<Completion<>> undoing;  // once that has begun
};

// What a listing shows.
struct EffectInfo {
  std::string label;
  std::vector<EffectInfo> steps;
};

class STOCKADE_API EffectList {
 public:
  explicit EffectList(Fiber& owner) : owner_(owner) {}

  std::shared_ptr<Effect> add(Effect effect);
  // Undoes this one and awaits it, then throws what its undo threw. Nothing once that has begun. A
  // caller that is dropped meanwhile drops the undo with it, never the list.
  Task<> undo(std::shared_ptr<Effect> effect);
  // Undoes all, the last first, joining those that are being undone. Their errors are logged. Waits
  // for a set-up that is running.
  Task<> undo_all();
  Task<> undo_steps();  // the same for the set-up itself, which does not wait for its end
  void forget(const Effect* effect) noexcept;  // for one that is over without an undo
  // `successor` takes the place of `old`, which is forgotten.
  void replace(const Effect* old, const Effect* successor);

  const std::vector<std::shared_ptr<Effect>>& effects() const noexcept { return effects_; }
  std::vector<EffectInfo> list() const;

  // A set-up may add steps whatever the state of the fiber, so that what it holds gets its undo.
  void begin_setup();
  void end_setup(std::exception_ptr error = nullptr);
  bool setting_up() const noexcept { return setup_ && !setup_->settled(); }
  Task<> setup_ended();  // throws the set-up's error

 private:
  Fiber& owner_;
  std::vector<std::shared_ptr<Effect>> effects_;
  std::optional<Completion<>> setup_;
  std::exception_ptr setup_error_;
};

}  // namespace stockade
