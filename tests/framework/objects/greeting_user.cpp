// SPDX-License-Identifier: MIT
// Needs a greeter; provides a second one that goes through the first.
#include "framework/plugin.hpp"
#include "tests/framework/objects/greeter.hpp"

namespace stockade::test {
namespace {

struct UserConfig {};

class SecondGreeter : public Greeter {
 public:
  explicit SecondGreeter(std::shared_ptr<Greeter> first) : first_(std::move(first)) {}
  std::string greet(const std::string& whom) override { return first_->greet(whom) + "!"; }

 private:
  std::shared_ptr<Greeter> first_;
};

Task<> apply(Context context, UserConfig) {
  // A turn in between, so that who mounts it cannot take it for settled too early.
  auto pause = sleep(context.loop(), std::chrono::milliseconds(5));
  co_await pause;
  context.provide_as<Greeter>(kSecondGreeter,
                              std::make_shared<SecondGreeter>(context.get<Greeter>()));
  context.effect("farewell", [context] { context.emit(Farewell{"user"}); });
}

}  // namespace
}  // namespace stockade::test

STOCKADE_PLUGIN("test-greeting-user", ({std::string(stockade::test::Greeter::service)}),
                stockade::test::apply)
