// SPDX-License-Identifier: MIT
#include "host/script_source.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using namespace std::chrono_literals;
using stockade::test::await_task;
using stockade::test::Scratch;
using stockade::test::thrown_by;
using stockade::test::write_file;

namespace {

using Lines = std::vector<std::string>;

Lines read_lines(const std::string& path) {
  Loop loop;
  ScriptSource source(loop, path);
  Lines lines;
  while (auto line = await_task(loop, source.next_line(AbortSignal()))) lines.push_back(*line);
  // The end stays the end.
  CHECK_FALSE(await_task(loop, source.next_line(AbortSignal())));
  return lines;
}

Lines lines_of(const std::string& content) {
  Scratch scratch;
  write_file(scratch / "script", content);
  return read_lines(scratch / "script");
}

struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    read = Fd(ends[0]);
    write = Fd(ends[1]);
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(read.get()); }
  void put(std::string_view text) const {
    REQUIRE(::write(write.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  Fd read;
  Fd write;
};

}  // namespace

TEST_CASE("script_source: lines come without their newline and as they are otherwise") {
  CHECK(lines_of("one\ntwo\r\n\n  three \n") == Lines{"one", "two\r", "", "  three "});
  CHECK(lines_of(std::string("a\0b\n\xff\n", 6)) == Lines{std::string("a\0b", 3), "\xff"});
}

TEST_CASE("script_source: the last line needs no newline") {
  CHECK(lines_of("one\ntwo") == Lines{"one", "two"});
}

TEST_CASE("script_source: an empty file has no lines") {
  CHECK(lines_of("").empty());
  CHECK(lines_of("\n") == Lines{""});
  CHECK(read_lines("/dev/null").empty());
}

TEST_CASE("script_source: many lines come in order whatever the reads") {
  std::string content;
  Lines expected;
  for (int i = 0; i < 2000; ++i) {
    expected.push_back(std::to_string(i) + std::string(static_cast<std::size_t>(i % 97), 'x'));
    content += expected.back() + "\n";
  }
  expected.push_back(std::string(300000, 'y'));
  content += expected.back();
  CHECK(lines_of(content) == expected);
}

TEST_CASE("script_source: a line at the limit is whole and one beyond it is cut") {
  for (std::size_t beyond :
       {std::size_t{0}, std::size_t{1}, std::size_t{5000}, std::size_t{3000000}}) {
    CAPTURE(beyond);
    auto lines = lines_of("first\n" + std::string(kMaxScriptLine + beyond, 'x') + "\nlast\n");
    REQUIRE(lines.size() == 3);
    CHECK(lines[0] == "first");
    CHECK(lines[1].size() == kMaxScriptLine + (beyond > 0 ? 1 : 0));
    CHECK(lines[2] == "last");
  }
}

TEST_CASE("script_source: a last line beyond the limit is cut and is the last") {
  for (std::size_t beyond : {std::size_t{5000}, std::size_t{3000000}}) {
    auto lines = lines_of("first\n" + std::string(kMaxScriptLine + beyond, 'x'));
    REQUIRE(lines.size() == 2);
    CHECK(lines[1].size() == kMaxScriptLine + 1);
  }
}

TEST_CASE("script_source: what cannot be read is refused by name") {
  Scratch scratch;
  Loop loop;
  auto missing = thrown_by([&] { ScriptSource source(loop, scratch / "missing"); });
  CHECK(missing.code == "SCRIPT_UNREADABLE");
  CHECK(missing.operand == scratch / "missing");
  CHECK_THAT(missing.text, ContainsSubstring("ENOENT"));
  auto directory = thrown_by([&] { ScriptSource source(loop, scratch.path()); });
  CHECK(directory.code == "SCRIPT_UNREADABLE");
  CHECK_THAT(directory.text, ContainsSubstring("EISDIR"));
}

TEST_CASE("script_source: a line from a pipe is whole however it is cut") {
  Pipe pipe;
  std::string text = "{\"é\": \"😀\"}\r\n\nnext\nlast";
  std::thread writer([&] {
    for (char c : text) {
      if (::write(pipe.write.get(), &c, 1) != 1) return;
      std::this_thread::sleep_for(1ms);
    }
    pipe.write.reset();
  });
  Lines lines = read_lines(pipe.path());
  writer.join();
  CHECK(lines == Lines{"{\"é\": \"😀\"}\r", "", "next", "last"});
}

TEST_CASE("script_source: a line is given before the next is there") {
  Pipe pipe;
  Loop loop;
  ScriptSource source(loop, pipe.path());
  pipe.put("one\ntw");
  CHECK(await_task(loop, source.next_line(AbortSignal())) == "one");

  std::optional<std::optional<std::string>> line;
  TaskScope scope(loop, [](std::exception_ptr) {});
  scope.start(stockade::test::store_value(source.next_line(AbortSignal()), &line));
  stockade::test::run_for(loop, 50ms);
  CHECK_FALSE(line);
  pipe.put("o\n");
  REQUIRE(stockade::test::wait_until(
      loop, [&] { return line.has_value(); }, 10s));
  CHECK(*line == "two");
}

TEST_CASE("script_source: waiting for a line does not hold up the loop or its end") {
  Pipe pipe;
  Loop loop;
  {
    ScriptSource source(loop, pipe.path());
    std::optional<std::optional<std::string>> line;
    TaskScope scope(loop, [](std::exception_ptr) {});
    scope.start(stockade::test::store_value(source.next_line(AbortSignal()), &line));
    bool ticked = false;
    Timer timer(loop);
    timer.start(20ms, [&] { ticked = true; });
    CHECK(stockade::test::wait_until(
        loop, [&] { return ticked; }, 10s));
  }
  loop.drain();  // nothing is left that would hold it
}

TEST_CASE("script_source: a dash is standard input and leaves it open and as it was") {
  Pipe pipe;
  pipe.put("one\n");
  pipe.write.reset();
  Fd before(fcntl(0, F_DUPFD_CLOEXEC, 3));
  dup2(pipe.read.get(), 0);
  int flags = fcntl(0, F_GETFL);
  Lines lines = read_lines("-");
  int flags_after = fcntl(0, F_GETFL);
  if (before)
    dup2(before.get(), 0);
  else
    close(0);
  CHECK(lines == Lines{"one"});
  CHECK(flags_after == flags);
}
