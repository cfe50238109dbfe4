// SPDX-License-Identifier: MIT
// Names and secrets that nobody can guess.
#pragma once

#include <cstddef>
#include <string>

#include "framework/api.hpp"

namespace stockade {

// `bytes` (at most 256) of the kernel's random numbers, as twice as many hexadecimal digits. Throws
// Error `INTERNAL` where the kernel gives none.
STOCKADE_API std::string random_hex(std::size_t bytes);

}  // namespace stockade
