// SPDX-License-Identifier: MIT
// What the test plugins provide and need.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "framework/loop.hpp"
#include "framework/task.hpp"

namespace stockade::test {

class Greeter {
 public:
  static constexpr std::string_view service = "test-greeter/1";
  virtual ~Greeter() = default;
  virtual std::string greet(const std::string& whom) = 0;
};

inline constexpr std::string_view kSecondGreeter = "test-greeter:second/1";
inline constexpr std::string_view kFirstRelay = "test-relay:first/1";
inline constexpr std::string_view kSecondRelay = "test-relay:second/1";
inline constexpr std::string_view kThirdRelay = "test-relay:third/1";

// Its answers tell which build gave them, some time after the call.
class Versioned {
 public:
  static constexpr std::string_view service = "test-versioned/1";
  virtual ~Versioned() = default;
  virtual int version() const = 0;
  // The version, after `wait`. Hold the object while it runs.
  virtual Task<int> call(Loop* loop, std::chrono::milliseconds wait) = 0;
};

inline constexpr std::string_view kOuterVersioned = "test-versioned:outer/1";

struct Farewell {
  static constexpr std::string_view event = "test-farewell/1";
  std::string from;
};

}  // namespace stockade::test
