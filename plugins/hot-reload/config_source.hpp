// SPDX-License-Identifier: MIT
// `ctx.configSource`: the file that the host was composed from, for who applies it anew.
#pragma once

#include <string>
#include <string_view>

#include "framework/loader.hpp"

namespace stockade {

class ConfigSource {
 public:
  static constexpr std::string_view service = "configSource/1";
  virtual ~ConfigSource() = default;
  virtual std::string path() const = 0;
  // As it is now, with what the command line changes in it. Throws Error `CONFIG_INVALID`.
  virtual LoaderConfig read() const = 0;
};

}  // namespace stockade
