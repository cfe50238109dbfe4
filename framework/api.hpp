// SPDX-License-Identifier: MIT
// What libstockade.so exports. Everything else is hidden, so that a plugin can be unmapped again.
#pragma once

#define STOCKADE_API __attribute__((visibility("default")))
