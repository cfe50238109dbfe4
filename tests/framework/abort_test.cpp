// SPDX-License-Identifier: MIT
#include "framework/abort.hpp"

#include <optional>
#include <vector>

#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

TEST_CASE("abort: a signal without a controller never aborts") {
  AbortSignal signal;
  bool called = false;
  auto subscription = signal.on_abort([&] { called = true; });
  CHECK_FALSE(signal.aborted());
  CHECK(signal.reason() == "aborted");
  CHECK_FALSE(called);
}

TEST_CASE("abort: reaches every copy of the signal with its reason") {
  AbortController controller;
  AbortSignal signal = controller.signal();
  AbortSignal copy = signal;
  CHECK_FALSE(copy.aborted());
  controller.abort("time is up");
  CHECK(signal.aborted());
  CHECK(copy.aborted());
  CHECK(copy.reason() == "time is up");
  CHECK(controller.signal().aborted());
}

TEST_CASE("abort: without a reason it has a general one") {
  AbortController controller;
  controller.abort();
  CHECK(controller.signal().reason() == "aborted");
}

TEST_CASE("abort: the first cause wins and listeners run once") {
  AbortController controller;
  int calls = 0;
  auto subscription = controller.signal().on_abort([&] { ++calls; });
  controller.abort("first");
  controller.abort("second");
  CHECK(calls == 1);
  CHECK(controller.signal().reason() == "first");
}

TEST_CASE("abort: listeners run inside the call in order of subscription") {
  AbortController controller;
  std::vector<int> order;
  auto one = controller.signal().on_abort([&] { order.push_back(1); });
  auto two = controller.signal().on_abort([&] { order.push_back(2); });
  CHECK(order.empty());
  controller.abort();
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("abort: a listener sees the signal aborted with its reason") {
  AbortController controller;
  AbortSignal signal = controller.signal();
  std::string seen;
  auto subscription =
      signal.on_abort([&] { seen = signal.aborted() ? signal.reason() : "not yet"; });
  controller.abort("why");
  CHECK(seen == "why");
}

TEST_CASE("abort: a subscription that went is not called") {
  AbortController controller;
  bool called = false;
  {
    auto subscription = controller.signal().on_abort([&] { called = true; });
  }
  controller.abort();
  CHECK_FALSE(called);
}

TEST_CASE("abort: a moved subscription counts once") {
  AbortController controller;
  int calls = 0;
  AbortSubscription kept;
  {
    auto subscription = controller.signal().on_abort([&] { ++calls; });
    kept = std::move(subscription);
  }
  AbortSubscription last = std::move(kept);
  controller.abort();
  CHECK(calls == 1);
}

TEST_CASE("abort: assigning over a subscription ends it") {
  AbortController controller;
  int first = 0;
  int second = 0;
  auto subscription = controller.signal().on_abort([&] { ++first; });
  subscription = controller.signal().on_abort([&] { ++second; });
  controller.abort();
  CHECK(first == 0);
  CHECK(second == 1);
}

TEST_CASE("abort: a listener may end the subscription of another") {
  AbortController controller;
  bool called = false;
  std::optional<AbortSubscription> other;
  auto first = controller.signal().on_abort([&] { other.reset(); });
  other.emplace(controller.signal().on_abort([&] { called = true; }));
  controller.abort();
  CHECK_FALSE(called);
}

TEST_CASE("abort: a listener may end its own subscription") {
  AbortController controller;
  int calls = 0;
  std::optional<AbortSubscription> own;
  own.emplace(controller.signal().on_abort([&] {
    own.reset();
    ++calls;
  }));
  controller.abort();
  CHECK(calls == 1);
}

TEST_CASE("abort: a listener may let go of the controller") {
  auto controller = std::make_optional<AbortController>();
  AbortSignal signal = controller->signal();
  int calls = 0;
  auto first = signal.on_abort([&] { controller.reset(); });
  auto second = signal.on_abort([&] { ++calls; });
  controller->abort("gone");
  CHECK(calls == 1);
  CHECK(signal.reason() == "gone");
}

TEST_CASE("abort: listening to an aborted signal calls nothing") {
  AbortController controller;
  controller.abort();
  bool called = false;
  auto subscription = controller.signal().on_abort([&] { called = true; });
  controller.abort();
  CHECK_FALSE(called);
}

TEST_CASE("abort: the signal outlives its controller") {
  AbortSignal signal;
  {
    AbortController controller;
    signal = controller.signal();
    controller.abort("kept");
  }
  CHECK(signal.aborted());
  CHECK(signal.reason() == "kept");
}

}  // namespace
}  // namespace stockade::test
