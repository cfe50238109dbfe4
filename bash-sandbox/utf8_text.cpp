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

}  // namespace stockade
