// SPDX-License-Identifier: MIT
// A directory of a test's own, removed with it.
#pragma once

#include <string>

namespace stockade::test {

class Scratch {
 public:
  // Below `parent`; resolved, and open to other users when `mode` says so.
  explicit Scratch(const std::string& parent = "/tmp", int mode = 0755);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

bool exists(const std::string& path);
std::string read_file(const std::string& path);  // "" for one that is not there
void write_file(const std::string& path, const std::string& content, int mode = 0644);

}  // namespace stockade::test
