// SPDX-License-Identifier: MIT
#include "tests/framework/objects/greeter.hpp"

#include "framework/plugin.hpp"

namespace stockade::test {
namespace {

struct GreeterConfig {
  std::string greeting = "hello";
};

class PoliteGreeter : public Greeter {
 public:
  explicit PoliteGreeter(std::string greeting) : greeting_(std::move(greeting)) {}
  std::string greet(const std::string& whom) override { return greeting_ + " " + whom; }

 private:
  std::string greeting_;
};

Task<> apply(Context context, GreeterConfig config) {
  context.provide<Greeter>(std::make_shared<PoliteGreeter>(config.greeting));
  context.effect("farewell", [context] { context.emit(Farewell{"greeter"}); });
  co_return;
}

}  // namespace
}  // namespace stockade::test

STOCKADE_PLUGIN("test-greeter", ({}), stockade::test::apply)
