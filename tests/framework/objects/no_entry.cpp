// SPDX-License-Identifier: MIT
// The symbol is there for the version script but hidden from the host.
extern "C" __attribute__((visibility("hidden"))) void stockade_plugin() {}
