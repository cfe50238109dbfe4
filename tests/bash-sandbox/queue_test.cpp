// SPDX-License-Identifier: MIT
#include "bash-sandbox/queue.hpp"

#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"

using namespace stockade;
using stockade::test::thrown_by;

namespace {

struct Rig {
  explicit Rig(std::size_t limit, std::size_t most_waiting = 100)
      : queue(std::make_shared<CallQueue>(loop, limit, most_waiting)) {}
  bool runs(const std::unique_ptr<CallQueue::Ticket>& ticket) {
    loop.drain();
    return ticket->admitted().settled() && ticket->admitted().value();
  }
  Loop loop;
  std::shared_ptr<CallQueue> queue;
};

}  // namespace

TEST_CASE("queue: as many run as may and the next one when one has ended") {
  Rig rig(2);
  auto a = rig.queue->join("x");
  auto b = rig.queue->join("x");
  auto c = rig.queue->join("x");
  CHECK(rig.runs(a));
  CHECK(rig.runs(b));
  CHECK_FALSE(rig.runs(c));
  CHECK(rig.queue->running() == 2);
  CHECK(rig.queue->waiting() == 1);
  b.reset();
  CHECK(rig.queue->running() == 1);
  CHECK(rig.runs(c));
  CHECK(rig.queue->running() == 2);
  CHECK(rig.queue->waiting() == 0);
}

TEST_CASE("queue: among one owner's calls the first to come is the first to run") {
  Rig rig(1);
  auto running = rig.queue->join("x");
  auto first = rig.queue->join("x");
  auto second = rig.queue->join("x");
  running.reset();
  CHECK(rig.runs(first));
  CHECK_FALSE(rig.runs(second));
}

TEST_CASE("queue: an owner with many calls does not keep another from having one") {
  Rig rig(4);
  std::vector<std::unique_ptr<CallQueue::Ticket>> greedy;
  for (int i = 0; i < 50; ++i) greedy.push_back(rig.queue->join("greedy"));
  rig.loop.drain();
  auto modest = rig.queue->join("modest");
  auto other = rig.queue->join("other");
  CHECK_FALSE(rig.runs(modest));
  greedy[0].reset();
  CHECK(rig.runs(modest));
  greedy[1].reset();
  CHECK(rig.runs(other));
  CHECK_FALSE(rig.runs(greedy[4]));
  greedy[2].reset();
  CHECK(rig.runs(greedy[4]));
}

TEST_CASE("queue: the places are shared evenly whoever came first") {
  Rig rig(6);
  std::vector<std::unique_ptr<CallQueue::Ticket>> tickets;
  auto holder = std::vector<std::unique_ptr<CallQueue::Ticket>>();
  for (int i = 0; i < 6; ++i) holder.push_back(rig.queue->join("holder"));
  rig.loop.drain();
  for (const char* owner : {"a", "a", "a", "a", "a", "a", "b", "b", "b", "c", "c", "c"})
    tickets.push_back(rig.queue->join(owner));
  holder.clear();
  std::map<char, int> running;
  for (std::size_t i = 0; i < tickets.size(); ++i)
    if (rig.runs(tickets[i])) ++running[i < 6 ? 'a' : i < 9 ? 'b' : 'c'];
  CHECK(running == std::map<char, int>{{'a', 2}, {'b', 2}, {'c', 2}});
}

TEST_CASE("queue: one that gives up waiting is not admitted and keeps nobody") {
  Rig rig(1);
  auto running = rig.queue->join("x");
  rig.loop.drain();
  auto cancelled = rig.queue->join("x");
  auto dropped = rig.queue->join("x");
  auto last = rig.queue->join("x");
  cancelled->cancel();
  REQUIRE(cancelled->admitted().settled());
  CHECK_FALSE(cancelled->admitted().value());
  dropped.reset();
  CHECK(rig.queue->waiting() == 1);
  running->cancel();  // too late: it runs
  CHECK(rig.runs(running));
  running.reset();
  CHECK(rig.runs(last));
  cancelled.reset();
  CHECK(rig.queue->running() == 1);
}

TEST_CASE("queue: when too many wait the next is refused") {
  Rig rig(1, 2);
  auto running = rig.queue->join("x");
  rig.loop.drain();
  auto one = rig.queue->join("x");
  auto two = rig.queue->join("y");
  auto thrown = thrown_by([&] { rig.queue->join("z"); });
  CHECK(thrown.code == "SHELL_BUSY");
  CHECK_THAT(thrown.text, ContainsSubstring("1 calls run and 2 wait"));
  one.reset();
  CHECK_FALSE(rig.runs(rig.queue->join("z")));
}

TEST_CASE("queue: one is admitted in each turn of the loop") {
  Rig rig(10);
  std::vector<std::unique_ptr<CallQueue::Ticket>> tickets;
  for (int i = 0; i < 5; ++i) tickets.push_back(rig.queue->join("x"));
  CHECK(rig.queue->running() == 0);
  std::vector<std::size_t> after_each_turn;
  std::function<void()> look = [&] {
    after_each_turn.push_back(rig.queue->running());
    if (after_each_turn.size() < 5) rig.loop.post(look);
  };
  rig.loop.post(look);
  rig.loop.drain();
  CHECK(after_each_turn == std::vector<std::size_t>{1, 2, 3, 4, 5});
}
