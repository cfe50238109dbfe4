// SPDX-License-Identifier: MIT
#include "bash-sandbox/utf8_text.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using namespace stockade;

#define REPLACEMENT "\xEF\xBF\xBD"

TEST_CASE("utf8_text: valid text stays as it is") {
  for (std::string text : {std::string(), std::string("plain\r\n\t\x1b[31m"), std::string("é😀€"),
                           std::string("a\0b", 3), std::string(REPLACEMENT)})
    CHECK(valid_utf8(text) == text);
}

TEST_CASE("utf8_text: each invalid sequence becomes one replacement") {
  struct Row {
    std::string bytes;
    std::string text;
  };
  for (const auto& row : {
           Row{"a\xff"
               "b",
               "a" REPLACEMENT "b"},
           Row{std::string("a\377\0b", 4), std::string("a" REPLACEMENT "\0b", 6)},
           Row{"\xff\xff", REPLACEMENT REPLACEMENT},
           Row{"\x80", REPLACEMENT},
           Row{"\xc3", REPLACEMENT},
           Row{"\xf0\x9f\x98", REPLACEMENT},
           Row{"\xf0"
               "ab",
               REPLACEMENT "ab"},
           Row{"\xc3"
               "a\xc3\xa9",
               REPLACEMENT "a\xc3\xa9"},
           Row{"\xed\xa0\x80", REPLACEMENT},
           Row{"\xc0\xaf", REPLACEMENT},
           Row{"\xf4\x90\x80\x80"
               "z",
               REPLACEMENT "z"},
       }) {
    CHECK(valid_utf8(row.bytes) == row.text);
  }
}

TEST_CASE("utf8_text: whatever the bytes the result can be put into JSON") {
  std::string bytes;
  unsigned state = 1;
  for (int i = 0; i < 20000; ++i) {
    state = state * 1103515245U + 12345U;
    bytes += static_cast<char>(state >> 16);
  }
  nlohmann::json json = valid_utf8(bytes);
  CHECK_NOTHROW(json.dump());
  nlohmann::json raw = bytes;
  CHECK_THROWS(raw.dump());
}

TEST_CASE("utf8_text: a tail begins with a whole character") {
  std::string emoji = "😀z";
  CHECK(from_character_start(emoji) == emoji);
  for (std::size_t cut : {1U, 2U, 3U})
    CHECK(from_character_start(std::string_view(emoji).substr(cut)) == "z");
  CHECK(from_character_start("") == "");
  CHECK(from_character_start("\xa9") == "");
  CHECK(from_character_start("abc") == "abc");
}

TEST_CASE("utf8_text: bytes that begin no character are dropped no further than one character") {
  CHECK(from_character_start("\x80\x80\x80\x80x") == "\x80x");
}

TEST_CASE("utf8_text: a character whose rest has not come waits and nothing else does") {
  struct Row {
    std::string piece;
    std::size_t kept;
  };
  for (const auto& row :
       {Row{"", 0}, Row{"abc", 3}, Row{"a\xC3", 1}, Row{"a\xC3\xA9", 3}, Row{"\xF0\x9F\x98", 0},
        Row{"x\xF0\x9F\x98\x80", 5}, Row{"\xE2\x82", 0}, Row{"\x80\x80\x80\x80", 4},
        Row{"a\xFF", 2}, Row{"\xE2\x82\xAC\xE2", 3}}) {
    CAPTURE(row.piece);
    CHECK(to_character_end(row.piece) == row.piece.substr(0, row.kept));
  }
}
