// SPDX-License-Identifier: MIT
// Fails some turns after the last service of a chain came.
#include "framework/plugin.hpp"
#include "tests/framework/objects/greeter.hpp"

namespace {

struct LateThrowerConfig {};

stockade::Task<> apply(stockade::Context context, LateThrowerConfig) {
  auto pause = stockade::sleep(context.loop(), std::chrono::milliseconds(20));
  co_await pause;
  throw stockade::Error("TOO_LATE", "late failure");
}

}  // namespace

STOCKADE_PLUGIN("test-late-thrower", ({std::string(stockade::test::kThirdRelay)}), apply)
