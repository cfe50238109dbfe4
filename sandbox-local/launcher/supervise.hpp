// SPDX-License-Identifier: MIT
// The process that stays between the host and the command: it owns the command's tree.
#pragma once

#include <stdint.h>

#include "sandbox-local/launcher/report.hpp"

namespace launcher {

struct Waiting {
  Shared* shared;
  long child;
};

// What the command leaves in the background has this long to end after it, as `exec > >(tee log)`
// needs for its last lines; then it is ended.
inline constexpr long kLingerMs = 200;

// Milliseconds of a clock that only goes forward.
long clock_ms();

// Blocks all signals, as the waiting process must not die of one; returns the mask of before.
uint64_t block_signals();
void set_signal_mask(uint64_t mask);

// Waits for `child`, serves the metadata filter's listener if there is one, and ends the whole tree
// when the command has ended, or when the read end of the status channel closes: that is how the
// host, or its death, ends a call. Then reports how the command ended, and ends the same way.
[[noreturn]] void supervise(const Waiting& waiting);

}  // namespace launcher
