// SPDX-License-Identifier: MIT
#include "framework/random.hpp"

#include <sys/random.h>

#include "framework/error.hpp"

namespace stockade {

std::string random_hex(std::size_t bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string drawn(bytes, '\0');
  // Up to 256 bytes come whole or not at all.
  if (bytes > 256 || getrandom(drawn.data(), bytes, 0) != static_cast<ssize_t>(bytes))
    throw Error("INTERNAL", "the kernel gives no random bytes");
  std::string text;
  text.reserve(2 * bytes);
  for (char drawn_byte : drawn) {
    const auto byte = static_cast<unsigned char>(drawn_byte);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace stockade
