// SPDX-License-Identifier: MIT
#include "framework/plugin.hpp"

namespace stockade::test {
namespace {

enum class Speed { slow, very_fast };

struct ConfiguredConfig {
  Speed speed = Speed::slow;
  std::uint32_t retry_count = 1;
  std::vector<std::string> names{};
};

Task<> apply(Context context, ConfiguredConfig config) {
  context.effect("retries " + std::to_string(config.retry_count), [] {});
  co_return;
}

void check(const ConfiguredConfig& config) {
  if (config.retry_count > 10)
    throw_config_issues("test-configured", {{"$.retryCount", "expected at most 10"}});
}

}  // namespace
}  // namespace stockade::test

STOCKADE_PLUGIN("test-configured", ({}), stockade::test::apply, stockade::test::check)
