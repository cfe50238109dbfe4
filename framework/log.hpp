// SPDX-License-Identifier: MIT
// Logging. The host owns the sink (standard error, nothing else); a plugin gets a named Log from
// its context and never sees spdlog, whose registry would otherwise keep the plugin's code alive.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "framework/api.hpp"

namespace stockade {

enum class LogLevel { trace, debug, info, warn, error, off };

// A cheap handle; copies write to the same sink.
class STOCKADE_API Log {
 public:
  // A root log that writes to standard error what is at least `level`.
  static Log standard_error(LogLevel level);

  Log named(std::string_view name) const;  // the same sink under another name

  bool enabled(LogLevel level) const;

  void debug(std::string_view message) const;
  void info(std::string_view message) const;
  void warn(std::string_view message) const;
  void error(std::string_view message) const;

 private:
  struct Impl;
  explicit Log(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace stockade
