// SPDX-License-Identifier: MIT
#include "framework/plugin.hpp"

namespace {

struct MinimalConfig {};

stockade::Task<> apply(stockade::Context, MinimalConfig) {
  co_return;
}

}  // namespace

STOCKADE_PLUGIN("test-minimal", ({}), apply)
