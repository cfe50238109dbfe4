// SPDX-License-Identifier: MIT
#include "host/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "framework/fd.hpp"
#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using namespace std::chrono_literals;
using stockade::test::read_file;
using stockade::test::run_for;
using stockade::test::Scratch;
using stockade::test::wait_until;

namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    read = Fd(ends[0]);
    write = Fd(ends[1]);
  }
  Fd read;
  Fd write;
};

std::string read_all(int fd) {
  std::string all;
  char chunk[65536];
  ssize_t n;
  while ((n = read(fd, chunk, sizeof chunk)) > 0) all.append(chunk, static_cast<std::size_t>(n));
  return all;
}

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(i) + "\n";
  return text;
}

}  // namespace

TEST_CASE("output: what is written arrives whole and in order") {
  Pipe pipe;
  std::string got;
  std::string all = numbers(300000);
  std::thread reader([&] { got = read_all(pipe.read.get()); });
  {
    Loop loop;
    Output output(loop, pipe.write.get());
    for (std::size_t at = 0; at < all.size(); at += 10007)
      output.write(std::string_view(all).substr(at, 10007));
    Completion<> drained = output.drained();
    CHECK_FALSE(drained.settled());
    CHECK(wait_until(loop, [&] { return drained.settled(); }));
    CHECK_FALSE(output.broken());
  }
  pipe.write.reset();
  reader.join();
  CHECK(got == all);
}

TEST_CASE("output: a reader that does not read blocks nothing and saturates") {
  Pipe pipe;
  Loop loop;
  Output output(loop, pipe.write.get());
  int drained = 0;
  output.on_drained([&] { ++drained; });
  std::string piece(65536, 'x');
  auto started = std::chrono::steady_clock::now();
  for (int i = 0; i < 40; ++i) output.write(piece);
  CHECK(output.saturated());
  run_for(loop, 100ms);
  CHECK(std::chrono::steady_clock::now() - started < 30s);
  CHECK(drained == 0);
  CHECK(output.saturated());

  std::string got;
  std::thread reader([&] { got = read_all(pipe.read.get()); });
  CHECK(wait_until(loop, [&] { return drained > 0; }));
  CHECK_FALSE(output.saturated());
  pipe.write.reset();
  reader.join();
  CHECK(got.size() == 40 * piece.size());
}

TEST_CASE("output: the descriptor is not changed for others who share it") {
  Pipe pipe;
  int before = fcntl(pipe.write.get(), F_GETFL);
  {
    Loop loop;
    Output output(loop, pipe.write.get());
    output.write("text");
    Completion<> drained = output.drained();
    REQUIRE(wait_until(loop, [&] { return drained.settled(); }));
    CHECK(fcntl(pipe.write.get(), F_GETFL) == before);
  }
  // Borrowed, so it is still open.
  CHECK(fcntl(pipe.write.get(), F_GETFL) == before);
}

TEST_CASE("output: with nothing queued it is drained at once") {
  Pipe pipe;
  Loop loop;
  Output output(loop, pipe.write.get());
  CHECK(output.drained().settled());
  CHECK_FALSE(output.saturated());
  output.write("");
  CHECK(output.drained().settled());
}

TEST_CASE("output: all who wait for the drain are told") {
  Pipe pipe;
  Loop loop;
  Output output(loop, pipe.write.get());
  output.write("text");
  Completion<> one = output.drained();
  Completion<> two = output.drained();
  CHECK(wait_until(loop, [&] { return one.settled() && two.settled(); }));
  output.write("more");
  CHECK_FALSE(output.drained().settled());
}

TEST_CASE("output: a reader that goes away is told once and holds nothing up") {
  Pipe pipe;
  Loop loop;
  Output output(loop, pipe.write.get());
  int broken = 0;
  output.on_broken([&] { ++broken; });
  output.write(std::string(3 << 20, 'x'));
  Completion<> drained = output.drained();
  run_for(loop, 50ms);
  CHECK(broken == 0);
  pipe.read.reset();
  CHECK(wait_until(loop, [&] { return drained.settled(); }));
  CHECK(output.broken());
  CHECK(broken == 1);
  CHECK_FALSE(output.saturated());
  output.write("more");
  CHECK(output.drained().settled());
  run_for(loop, 50ms);
  CHECK(broken == 1);
}

TEST_CASE("output: one that is dropped with bytes left drops them") {
  Pipe pipe;
  Loop loop;
  int told = 0;
  {
    Output output(loop, pipe.write.get());
    output.on_drained([&] { ++told; });
    output.on_broken([&] { ++told; });
    output.write(std::string(3 << 20, 'x'));
    run_for(loop, 20ms);
  }
  pipe.read.reset();
  loop.drain();
  CHECK(told == 0);
}

TEST_CASE("output: a file takes everything at once") {
  Scratch scratch;
  Fd file(open((scratch / "f").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  Loop loop;
  Output output(loop, file.get());
  int drained = 0;
  output.on_drained([&] { ++drained; });
  std::string all = numbers(300000);
  output.write(all);
  output.write("end");
  CHECK(drained == 2);
  CHECK(output.drained().settled());
  CHECK(read_file(scratch / "f") == all + "end");
}

TEST_CASE("output: a file that takes no more is broken") {
  Fd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full);
  Loop loop;
  Output output(loop, full.get());
  int broken = 0;
  output.on_broken([&] { ++broken; });
  output.write("text");
  CHECK(wait_until(
      loop, [&] { return broken == 1; }, 10s));
  CHECK(output.broken());
}

TEST_CASE("output: told to hurry it waits for a reader who reads and not for one who has stalled") {
  Pipe pipe;
  Loop loop;
  Output output(loop, pipe.write.get());
  output.set_patience(100ms);
  output.write("the last result\n");
  run_for(loop, 300ms);
  CHECK_FALSE(output.broken());
  output.write(numbers(300000));
  Completion<> drained = output.drained();
  REQUIRE(wait_until(loop, [&] { return drained.settled(); }));
  CHECK(output.broken());
  output.write("lost");
  pipe.write = Fd();
  std::string got = read_all(pipe.read.get());
  CHECK(got.starts_with("the last result\n0\n1\n"));
  CHECK_FALSE(got.ends_with("lost"));
}
