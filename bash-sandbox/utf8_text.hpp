// SPDX-License-Identifier: MIT
// Bytes at the border to JSON. Inside, output is bytes; only what is rendered becomes text.
#pragma once

#include <string>
#include <string_view>

namespace stockade {

// Each invalid sequence becomes one U+FFFD.
std::string valid_utf8(std::string_view bytes);

// Without the rest of a character at its beginning, for a tail that was cut at a byte.
std::string_view from_character_start(std::string_view tail);

// Without a character at its end whose rest has not come yet, for a stream that is read in pieces.
std::string_view to_character_end(std::string_view piece);

}  // namespace stockade
