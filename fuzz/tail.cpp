// SPDX-License-Identifier: MIT
// The tail buffer beside the simplest thing that does the same: a string with everything in it.
#include "bash-sandbox/tail.hpp"
#include "fuzz/fuzz.hpp"

using namespace stockade;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::size_t cap = 1 + input.byte();
  TailBuffer tail(cap);
  std::string all;
  std::uint64_t offset = 0;
  while (!input.empty()) {
    const std::uint8_t what = input.byte();
    if (what < 8) tail.shrink();
    if (what >= 8) {
      // Now and then more than is kept.
      std::string piece(input.take(what & 15));
      if (what >= 200)
        while (piece.size() < 3 * cap && !piece.empty()) piece += piece;
      tail.push(piece);
      all += piece;
    }
    const std::string kept = all.size() > cap ? all.substr(all.size() - cap) : all;
    fuzz::require(tail.tail() == kept, "the last bytes are kept");
    fuzz::require(tail.total() == all.size(), "every byte is counted");
    fuzz::require(tail.truncated() == (all.size() > cap), "what is dropped is told");
    if (what % 3 == 0) {
      const auto slice = tail.read_from(offset);
      const std::uint64_t begin = all.size() - kept.size();
      fuzz::require(slice.lossy == (offset < begin), "a loss is told and nothing else is one");
      fuzz::require(slice.bytes == (slice.lossy ? kept : all.substr(offset)),
                    "a reader gets what came since");
      fuzz::require(slice.next == all.size(), "the next read begins where this one ended");
      offset = slice.next;
    }
  }
  return 0;
}
