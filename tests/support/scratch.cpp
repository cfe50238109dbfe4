// SPDX-License-Identifier: MIT
#include "tests/support/scratch.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace stockade::test {

Scratch::Scratch(const std::string& parent, int mode) : path_(parent + "/stockade-test-XXXXXX") {
  if (!mkdtemp(path_.data())) throw std::runtime_error("mkdtemp below " + parent + " failed");
  char resolved[PATH_MAX];
  if (realpath(path_.c_str(), resolved)) path_ = resolved;
  chmod(path_.c_str(), static_cast<mode_t>(mode));
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool exists(const std::string& path) {
  return faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& content, int mode) {
  std::ofstream(path, std::ios::binary) << content;
  chmod(path.c_str(), static_cast<mode_t>(mode));
}

}  // namespace stockade::test
