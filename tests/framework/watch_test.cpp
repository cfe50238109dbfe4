// SPDX-License-Identifier: MIT
#include "framework/watch.hpp"

#include <unistd.h>

#include <cstdio>

#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

using std::chrono::milliseconds;

struct Watched : Tree {
  Watched() {
    write_file(file, "one");
    watch.emplace(loop, file, milliseconds(20), [this] { seen.push_back(read_file(file)); });
  }
  void wait_for_changes(std::size_t count) {
    run_until(loop, [&] { return seen.size() >= count; });
  }

  Scratch scratch;
  std::string file = scratch / "config.json";
  Trace seen;
  std::optional<FileWatch> watch;
};

TEST_CASE("watch: a file that is written in place is told once") {
  Watched w;
  write_file(w.file, "two");
  w.wait_for_changes(1);
  run_for(w.loop, milliseconds(100));
  CHECK(w.seen == Trace{"two"});
}

TEST_CASE("watch: so is one that is renamed over it") {
  Watched w;
  for (const char* text : {"two", "three"}) {
    w.seen.clear();
    write_file(w.scratch / "new", text);
    REQUIRE(std::rename((w.scratch / "new").c_str(), w.file.c_str()) == 0);
    w.wait_for_changes(1);
    CHECK(w.seen == Trace{text});
  }
}

TEST_CASE("watch: a file that goes and comes back is told when it is back") {
  Watched w;
  unlink(w.file.c_str());
  run_for(w.loop, milliseconds(60));
  CHECK(w.seen.empty());
  write_file(w.file, "back");
  w.wait_for_changes(1);
  CHECK(w.seen == Trace{"back"});
}

TEST_CASE("watch: neighbours are none of its business") {
  Watched w;
  for (int i = 0; i < 10; ++i) {
    write_file(w.scratch / "other", std::to_string(i));
    run_for(w.loop, milliseconds(10));
  }
  run_for(w.loop, milliseconds(100));
  CHECK(w.seen.empty());
  // Nor do they keep it from being heard.
  write_file(w.file, "two");
  int rounds = 0;
  while (w.seen.empty() && rounds++ < 500) {
    write_file(w.scratch / "other", std::to_string(rounds));
    run_for(w.loop, milliseconds(5));
  }
  CHECK(w.seen == Trace{"two"});
}

TEST_CASE("watch: it does not keep a loop running") {
  Watched w;
  w.loop.drain();
  SUCCEED();
}

TEST_CASE("watch: a directory that is not there is named") {
  Tree tree;
  auto failure = failure_of([&] { FileWatch(tree.loop, "/no/such/file", milliseconds(1), [] {}); });
  CHECK(failure.code == "WATCH_FAILED");
  CHECK(failure.operand == "/no/such");
}

}  // namespace
}  // namespace stockade::test
