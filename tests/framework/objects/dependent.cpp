// SPDX-License-Identifier: MIT
// Needs a library that is not where the loader looks.
#include "framework/plugin.hpp"

extern "C" int stockade_test_dependency();

namespace {

struct NoConfig {};

stockade::Task<> apply(stockade::Context context, NoConfig) {
  context.effect(std::to_string(stockade_test_dependency()), [] {});
  co_return;
}

}  // namespace

STOCKADE_PLUGIN("test-dependent", ({}), apply)
