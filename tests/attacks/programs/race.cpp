// SPDX-License-Identifier: MIT
// race path|link|directory INSIDE OUTSIDE: makes 4,000 chmods from two threads while the name that
// they use flips between a file inside and one outside: `path` in the memory that holds it, `link`
// by a symbolic link in the working directory, `directory` by one to the directory that holds `m`.
#include <sys/stat.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "attack.hpp"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  bool by_directory = std::string_view(argv[1]) == "directory";
  bool by_link = by_directory || std::string_view(argv[1]) == "link";
  std::string inside = argv[2];
  std::string outside = argv[3];
  static char name[4096];
  strcpy(name, by_directory ? "flipping/m" : by_link ? "flipping" : inside.c_str());
  if (by_link) {
    unlink("flipping");
    if (symlink(inside.c_str(), "flipping") != 0) return 1;
  }
  std::atomic<bool> ended{false};
  std::atomic<unsigned> flips{0};
  std::thread flipper([&] {
    for (unsigned i = 0; !ended; ++i, ++flips) {
      const std::string& now = i % 2 ? inside : outside;
      if (by_link) {
        unlink("next");
        if (symlink(now.c_str(), "next") != 0 || rename("next", "flipping") != 0) {
          flips = 10;
          return;
        }
      } else {
        memcpy(name, now.c_str(), now.size() + 1);
        if (i % 16 == 0) std::this_thread::yield();
      }
    }
  });
  auto change = [&] {
    while (flips < 10) std::this_thread::yield();
    for (int i = 0; i < 2000; ++i) {
      syscall(SYS_chmod, name, i % 2 ? 0711 : 0722);
      if (i % 64 == 0) std::this_thread::yield();
    }
  };
  std::thread other(change);
  change();
  other.join();
  ended = true;
  flipper.join();
  return 0;
}
