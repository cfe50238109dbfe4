// SPDX-License-Identifier: MIT
// A descriptor that the host must refuse; which part is wrong is a matter of definitions.
#include <cstdlib>

#include "framework/plugin.hpp"

#ifndef TEST_MAGIC
#define TEST_MAGIC stockade::kPluginMagic
#endif
#ifndef TEST_ABI
#define TEST_ABI stockade::kPluginAbi
#endif
#ifndef TEST_FINGERPRINT
#define TEST_FINGERPRINT stockade::kPluginFingerprint
#endif

extern "C" STOCKADE_API const stockade::PluginDescriptor* stockade_plugin() {
  static constexpr stockade::PluginDescriptor descriptor{
      TEST_MAGIC, TEST_ABI, TEST_FINGERPRINT, [](stockade::PluginDefinition&) { std::abort(); }};
  return &descriptor;
}
