// SPDX-License-Identifier: MIT
#include "bash-sandbox/utf8_text.hpp"

#include <utf8.h>

#include <iterator>

namespace stockade {

std::string valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  utf8::replace_invalid(bytes.begin(), bytes.end(), std::back_inserter(text));
  return text;
}

std::string_view from_character_start(std::string_view tail) {
  std::size_t skip = 0;
  while (skip < 3 && skip < tail.size() &&
         (static_cast<unsigned char>(tail[skip]) & 0xC0U) == 0x80U)
    ++skip;
  return tail.substr(skip);
}

std::string_view to_character_end(std::string_view piece) {
  for (std::size_t back = 1; back <= 3 && back <= piece.size(); ++back) {
    const auto byte = static_cast<unsigned char>(piece[piece.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;  // the inside of a character
    // By its lead alone, valid or not, as the decoder takes it: so pieces become the same text.
    const std::size_t whole = byte >= 0xF0 && byte < 0xF8   ? 4
                              : byte >= 0xE0 && byte < 0xF0 ? 3
                              : byte >= 0xC0 && byte < 0xE0 ? 2
                                                            : 1;
    return whole > back ? piece.substr(0, piece.size() - back) : piece;
  }
  return piece;
}

}  // namespace stockade
