// SPDX-License-Identifier: MIT
// Tells when a file has other content, however it was written: in place, by a rename over it, or
// through a link in its directory.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "framework/api.hpp"
#include "framework/loop.hpp"

namespace stockade {

class STOCKADE_API FileWatch {
 public:
  // `changed` is called on the loop once the file has been there, unchanged, for `quiet`. Does not
  // keep the loop running. Throws Error `WATCH_FAILED` naming the directory.
  FileWatch(Loop& loop, std::string path, std::chrono::milliseconds quiet,
            std::function<void()> changed);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

 private:
  struct State;
  State* state_;  // lives until libuv's close callback
};

}  // namespace stockade
