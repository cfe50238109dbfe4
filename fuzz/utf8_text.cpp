// SPDX-License-Identifier: MIT
// The border to JSON: whatever the bytes and however they come in pieces, valid text comes out, and
// the same as if they had come at once; but how many marks stand for one stretch that is invalid
// may differ.
#include <utf8.h>

#include "bash-sandbox/utf8_text.hpp"
#include "fuzz/fuzz.hpp"

using namespace stockade;

namespace {

std::string with_single_marks(std::string text) {
  const std::string mark = "\xEF\xBF\xBD";
  for (std::size_t at = 0; (at = text.find(mark + mark, at)) != std::string::npos;)
    text.erase(at, mark.size());
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string text = valid_utf8(bytes);
  fuzz::require(utf8::is_valid(text.begin(), text.end()), "the text is valid");
  fuzz::require(valid_utf8(text) == text, "valid text stays as it is");

  const std::string_view from = from_character_start(bytes);
  fuzz::require(bytes.ends_with(from) && bytes.size() - from.size() <= 3,
                "no more than the rest of a character goes from the beginning");
  const std::string_view to = to_character_end(bytes);
  fuzz::require(bytes.starts_with(to) && bytes.size() - to.size() <= 3,
                "no more than a part of a character waits at the end");

  // In pieces, as a reader of a running command gets them.
  for (std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{5}}) {
    std::string in_pieces;
    std::size_t given = 0;
    for (std::size_t end = step; end < size; end += step) {
      const std::string_view piece = to_character_end(bytes.substr(given, end - given));
      in_pieces += valid_utf8(piece);
      given += piece.size();
    }
    in_pieces += valid_utf8(bytes.substr(given));
    fuzz::require(with_single_marks(in_pieces) == with_single_marks(text),
                  "pieces make the same text");
    if (text == bytes) fuzz::require(in_pieces == text, "valid pieces stay as they are");
  }
  return 0;
}
