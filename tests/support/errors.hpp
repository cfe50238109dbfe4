// SPDX-License-Identifier: MIT
// What a call threw.
#pragma once

#include <functional>
#include <string>

#include "framework/error.hpp"

namespace stockade::test {

struct Thrown {
  std::string code;  // "" when nothing was thrown, "?" for what is no Error
  std::string text;
  std::string operand;
};

inline Thrown thrown_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.code(), error.what(), error.operand()};
  } catch (const std::exception& error) {
    return {"?", error.what(), {}};
  }
  return {};
}

}  // namespace stockade::test
