// SPDX-License-Identifier: MIT
#include "framework/plugin.hpp"

struct SmallestConfig {
  std::string greeting = "hello";
};

stockade::Task<> apply(stockade::Context context, SmallestConfig config) {
  context.log().warn(config.greeting);
  co_return;
}

STOCKADE_PLUGIN("smallest", ({}), apply)
