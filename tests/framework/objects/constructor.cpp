// SPDX-License-Identifier: MIT
// Does in a static constructor what it must not: prints, or (TEST_THROW) throws.
#include <cstdio>
#include <stdexcept>

#include "framework/plugin.hpp"

namespace {

struct Eager {
  Eager() {
#ifdef TEST_THROW
    throw std::runtime_error("constructor error");
#else
    std::printf("hello from a constructor\n");
#endif
  }
};
Eager eager;

struct NoConfig {};

stockade::Task<> apply(stockade::Context, NoConfig) {
  co_return;
}

}  // namespace

STOCKADE_PLUGIN("test-constructor", ({}), apply)
