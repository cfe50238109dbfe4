// SPDX-License-Identifier: MIT
#include "plugins/mcp/framing.hpp"

#include <vector>

#include "tests/support/catch.hpp"

using namespace stockade;

namespace {

struct Framed {
  std::vector<std::string> lines;
  int overlong = 0;
  bool operator==(const Framed&) const = default;
};

// In pieces of `piece` bytes.
Framed framed(const std::string& stream, std::size_t piece, std::size_t limit = 100) {
  Framed seen;
  LineFramer framer(
      limit, [&](std::string_view line) { seen.lines.emplace_back(line); },
      [&] {
        seen.lines.emplace_back("<overlong>");
        ++seen.overlong;
      });
  for (std::size_t at = 0; at < stream.size(); at += piece)
    framer.feed(std::string_view(stream).substr(at, piece));
  framer.finish();
  return seen;
}

}  // namespace

TEST_CASE("mcp framing: lines do not depend on how the pipe has cut them") {
  const std::string stream = "\xEF\xBB\xBF{\"a\":\"\u00e9\"}\r\n\n  \t\r\n{\"b\":1}\n" +
                             std::string(250, 'x') + "\nafter\n" + std::string(100, 'y') +
                             "\nlast without newline";
  Framed whole = framed(stream, stream.size());
  CHECK(whole.lines == std::vector<std::string>{"{\"a\":\"\u00e9\"}", "{\"b\":1}", "<overlong>",
                                                "after", std::string(100, 'y'),
                                                "last without newline"});
  for (std::size_t piece = 1; piece < 120; ++piece) {
    CAPTURE(piece);
    CHECK(framed(stream, piece) == whole);
  }
}

TEST_CASE("mcp framing: a flood without a newline is told of once and kept nowhere") {
  int overlong = 0;
  std::vector<std::string> lines;
  LineFramer framer(
      1000, [&](std::string_view line) { lines.emplace_back(line); }, [&] { ++overlong; });
  const std::string block(65536, 'x');
  for (int i = 0; i < 1024; ++i) framer.feed(block);
  CHECK(overlong == 1);
  framer.feed("\nnext\n");
  CHECK(lines == std::vector<std::string>{"next"});
  CHECK(overlong == 1);
}

TEST_CASE("mcp framing: the end of the stream ends what is left") {
  CHECK(framed("", 1).lines.empty());
  CHECK(framed("\n\r\n", 1).lines.empty());
  CHECK(framed(std::string(300, 'x'), 7).overlong == 1);
}
