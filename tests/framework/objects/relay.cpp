// SPDX-License-Identifier: MIT
// Passes a greeter on under another key; built for each link of a chain.
#include "framework/plugin.hpp"
#include "tests/framework/objects/greeter.hpp"

namespace stockade::test {
namespace {

struct RelayConfig {};

Task<> apply(Context context, RelayConfig) {
  context.provide_as<Greeter>(TEST_TO, context.find_as<Greeter>(TEST_FROM));
  co_return;
}

}  // namespace
}  // namespace stockade::test

STOCKADE_PLUGIN("test-relay", ({std::string(stockade::test::TEST_FROM)}), stockade::test::apply)
