// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace stockade::test {

// The pids of this process's children, zombies included; "" without one. The kernel lists them by
// the thread that forked, and libuv's threads do.
inline std::string children() {
  std::string all;
  std::error_code gone;  // a thread may end
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    std::ifstream in(thread.path() / "children");
    all.append(std::istreambuf_iterator<char>(in), {});
  }
  return all;
}

}  // namespace stockade::test
