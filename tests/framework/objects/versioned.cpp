// SPDX-License-Identifier: MIT
// A provider that is rebuilt: TEST_VERSION is what changed. With what pins a library where
// TEST_PINNED is defined, and one that cannot load where TEST_THROWS is.
#include "framework/plugin.hpp"
#include "tests/framework/objects/greeter.hpp"

namespace stockade::test {
namespace {

struct VersionedConfig {
  std::string note = "none";
  bool fail = false;
};

inline int calls = 0;  // state that a reload must begin anew

#ifdef TEST_PINNED
thread_local std::string pinned_text;
#endif

Task<int> answer(Loop* loop, std::chrono::milliseconds wait) {
  auto pause = sleep(*loop, wait);
  co_await pause;
  co_return TEST_VERSION;
}

class VersionedService final : public Versioned {
 public:
  int version() const override { return TEST_VERSION; }
  Task<int> call(Loop* loop, std::chrono::milliseconds wait) override {
    ++calls;
    return answer(loop, wait);
  }
};

Task<> apply(Context context, VersionedConfig config) {
#ifdef TEST_PINNED
  pinned_text = std::string(100, 'x');
#endif
  context.effect("note " + config.note + " after " + std::to_string(calls), [] {});
  auto service = std::make_shared<VersionedService>();
  context.provide<Versioned>(service);
  auto pause = sleep(context.loop(), std::chrono::milliseconds(1));
  co_await pause;
#ifdef TEST_THROWS
  throw Error("NOT_TODAY", "this build does not load");
#endif
  if (config.fail) throw Error("NOT_TODAY", "told to fail");
}

}  // namespace
}  // namespace stockade::test

STOCKADE_PLUGIN("test-versioned", ({}, {std::string(stockade::test::Versioned::service)}),
                stockade::test::apply)
