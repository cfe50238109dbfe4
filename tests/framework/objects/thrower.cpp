// SPDX-License-Identifier: MIT
// Its exception is a type of its own, whose code goes with the library.
#include "framework/plugin.hpp"

namespace {

struct OwnError : std::exception {
  const char* what() const noexcept override { return "the body's own error"; }
};

struct ThrowerConfig {};

stockade::Task<> apply(stockade::Context context, ThrowerConfig) {
  context.effect("nothing", [] {});
  throw OwnError();
  co_return;
}

}  // namespace

STOCKADE_PLUGIN("test-thrower", ({}), apply)
