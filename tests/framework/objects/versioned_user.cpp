// SPDX-License-Identifier: MIT
// Passes calls on to the provider that was there when it loaded.
#include "framework/plugin.hpp"
#include "tests/framework/objects/greeter.hpp"

namespace stockade::test {
namespace {

struct UserConfig {};

class Outer final : public Versioned {
 public:
  explicit Outer(std::shared_ptr<Versioned> inner) : inner_(std::move(inner)) {}
  int version() const override { return inner_->version(); }
  Task<int> call(Loop* loop, std::chrono::milliseconds wait) override {
    return inner_->call(loop, wait);
  }

 private:
  std::shared_ptr<Versioned> inner_;
};

Task<> apply(Context context, UserConfig) {
  auto pause = sleep(context.loop(), std::chrono::milliseconds(1));
  co_await pause;
  context.provide_as<Versioned>(kOuterVersioned, std::make_shared<Outer>(context.get<Versioned>()));
}

}  // namespace
}  // namespace stockade::test

STOCKADE_PLUGIN("test-versioned-user",
                ({std::string(stockade::test::Versioned::service)},
                 {std::string(stockade::test::kOuterVersioned)}),
                stockade::test::apply)
