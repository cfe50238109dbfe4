// SPDX-License-Identifier: MIT
// The one place that knows the version; CMake reads it from here.
#pragma once

#define STOCKADE_VERSION "0.1.0"
