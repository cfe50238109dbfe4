// SPDX-License-Identifier: MIT
#include "bash-sandbox/collect.hpp"

#include <filesystem>

#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using stockade::test::read_file;
using stockade::test::wait_until;

namespace {

// A collector and the files that it leaves.
struct Rig {
  explicit Rig(std::size_t cap, std::uint64_t spill_cap = 1 << 30)
      : collector(loop, directory, "stdout", "", cap, spill_cap, [this] { ++drained; }) {}
  std::string spilled() {
    collector.close();
    wait_until(loop, [this] { return collector.flushed(); });
    return read_file(collector.captured().spill_path.value());
  }
  Loop loop;
  SpillDirectory directory{loop};
  int drained = 0;
  Collector collector;
};

}  // namespace

TEST_CASE("collect: a tail keeps exactly its last bytes") {
  TailBuffer tail(10);
  for (const char* text : {"aaaa", "bbbbbb"}) tail.push(text);
  CHECK(tail.tail() == "aaaabbbbbb");
  CHECK_FALSE(tail.truncated());
  tail.push("cc");
  CHECK(tail.tail() == "aabbbbbbcc");
  CHECK(tail.truncated());
  CHECK(tail.total() == 12);
}

TEST_CASE("collect: a tail is the same however the bytes come") {
  std::string all;
  for (int i = 0; i < 5000; ++i) all += static_cast<char>('a' + i % 26);
  for (std::size_t step : {1U, 3U, 7U, 99U, 100U, 101U, 350U, 5000U}) {
    TailBuffer tail(100);
    for (std::size_t at = 0; at < all.size(); at += step)
      tail.push(std::string_view(all).substr(at, step));
    CHECK(tail.tail() == all.substr(all.size() - 100));
    CHECK(tail.total() == all.size());
  }
}

TEST_CASE("collect: a reader that was too slow gets the whole tail and is told") {
  TailBuffer tail(10);
  tail.push("12345");
  auto first = tail.read_from(0);
  CHECK(first.bytes == "12345");
  CHECK(first.next == 5);
  CHECK_FALSE(first.lossy);
  tail.push("abcdefghijklmnopqrst");
  auto second = tail.read_from(first.next);
  CHECK(second.lossy);
  CHECK(second.bytes == "klmnopqrst");
  CHECK(second.next == 25);
  auto none = tail.read_from(second.next);
  CHECK(none.bytes.empty());
  CHECK_FALSE(none.lossy);
  CHECK(none.next == 25);
}

TEST_CASE("collect: a reader at the first kept byte loses nothing") {
  TailBuffer tail(10);
  tail.push("12345");
  tail.push("67890abcde");
  auto slice = tail.read_from(5);
  CHECK(slice.bytes == "67890abcde");
  CHECK_FALSE(slice.lossy);
  CHECK(tail.read_from(4).lossy);
  CHECK(tail.read_from(7).bytes == "890abcde");
}

TEST_CASE("collect: what fits in memory is not spilled") {
  Rig rig(10);
  rig.collector.push("12345");
  rig.collector.push("67890");
  auto stream = rig.collector.captured();
  CHECK(stream.bytes == "1234567890");
  CHECK_FALSE(stream.truncated);
  CHECK_FALSE(stream.spill_path);
  CHECK_FALSE(stream.spill_note);
  CHECK(rig.collector.flushed());
}

TEST_CASE("collect: what overflows is on disk from its first byte") {
  Rig rig(10);
  rig.collector.push("12345");
  rig.collector.push(std::string("67890\0\xff", 7));
  rig.collector.push("end");
  auto stream = rig.collector.captured();
  CHECK(stream.truncated);
  CHECK(stream.total == 15);
  CHECK(stream.bytes == std::string("67890\0\xff"
                                    "end",
                                    10));
  REQUIRE(stream.spill_path);
  CHECK_FALSE(stream.spill_note);
  CHECK(rig.spilled() == std::string("1234567890\0\xff"
                                     "end",
                                     15));
  CHECK(rig.drained > 0);
}

TEST_CASE("collect: one push larger than everything is on disk as a whole") {
  Rig rig(10);
  std::string big(300000, 'x');
  big += "END";
  rig.collector.push(big);
  CHECK(rig.collector.captured().bytes == "xxxxxxxEND");
  CHECK(rig.spilled() == big);
}

TEST_CASE("collect: a spill ends at its cap with a note and the count goes on") {
  Rig rig(10, 20);
  for (int i = 0; i < 5; ++i) rig.collector.push("0123456789");
  auto stream = rig.collector.captured();
  CHECK(stream.total == 50);
  CHECK(stream.bytes == "0123456789");
  CHECK(rig.spilled() == "01234567890123456789");
  CHECK(rig.collector.captured().spill_note == "the spill file ends at its cap");
}

TEST_CASE("collect: a disk that is behind holds the reader back until it has caught up") {
  Rig rig(10);
  CHECK_FALSE(rig.collector.saturated());
  std::string piece(65536, 'x');
  int pushed = 0;
  while (!rig.collector.saturated() && pushed < 100) {
    rig.collector.push(piece);
    ++pushed;
  }
  CHECK(rig.collector.saturated());
  CHECK(pushed < 100);
  CHECK_FALSE(rig.collector.flushed());
  CHECK(wait_until(rig.loop, [&] { return rig.drained > 0; }));
  CHECK_FALSE(rig.collector.saturated());
  rig.collector.close();
  CHECK(wait_until(rig.loop, [&] { return rig.collector.flushed(); }));
}
