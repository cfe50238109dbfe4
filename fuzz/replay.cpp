// SPDX-License-Identifier: MIT
// replay DIRECTORY: gives every file of a corpus to the fuzzer that it is linked with, and every
// beginning of it.
#include <dirent.h>

#include <fstream>
#include <iterator>

#include "fuzz/fuzz.hpp"

int main(int argc, char** argv) {
  DIR* directory = argc == 2 ? opendir(argv[1]) : nullptr;
  if (!directory) return 2;
  int files = 0;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    std::ifstream in(std::string(argv[1]) + "/" + entry->d_name, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    const std::size_t step = bytes.size() / 256 + 1;
    for (std::size_t size = 0; size < bytes.size(); size += step)
      LLVMFuzzerTestOneInput(data, size);
    LLVMFuzzerTestOneInput(data, bytes.size());
    ++files;
  }
  closedir(directory);
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}
