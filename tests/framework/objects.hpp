// SPDX-License-Identifier: MIT
// Where the shared objects of the tests are, and whether one is mapped.
#pragma once

#include <string>

#include "tests/support/scratch.hpp"

namespace stockade::test {

inline std::string object_file(const std::string& name) {
  return std::string(TEST_OBJECTS) + "/" + name + ".so";
}

inline bool mapped(const std::string& name) {
  return read_file("/proc/self/maps").find("/" + name + ".so") != std::string::npos;
}

}  // namespace stockade::test
