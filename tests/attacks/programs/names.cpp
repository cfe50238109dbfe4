// SPDX-License-Identifier: MIT
// names CALL A [B]: changes contents or names by calls that no common tool makes.
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "attack.hpp"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::string_view call = argv[1];
  const char* a = argv[2];
  const char* b = argc > 3 ? argv[3] : "";
  if (call == "truncate") return ended(truncate(a, 0));
  if (call == "exchange") return ended(syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2));
  if (call == "open-truncate") return ended(open(a, O_RDONLY | O_TRUNC));
  if (call == "tmpfile") {  // in directory A, then given the name B
    int fd = open(a, O_TMPFILE | O_RDWR, 0600);
    if (fd < 0) return ended(fd);
    fchmod(fd, 0711);
    std::string link = "/proc/self/fd/" + std::to_string(fd);
    return ended(linkat(AT_FDCWD, link.c_str(), AT_FDCWD, b, AT_SYMLINK_FOLLOW));
  }
  if (call == "subvolume") {  // B in directory A
    btrfs_ioctl_vol_args arguments{};
    strncpy(arguments.name, b, sizeof arguments.name - 1);
    return ended(ioctl(open(a, O_RDONLY | O_DIRECTORY), BTRFS_IOC_SUBVOL_CREATE, &arguments));
  }
  if (call == "bind") {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (strlen(a) >= sizeof address.sun_path) return 2;
    strcpy(address.sun_path, a);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return ended(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address));
  }
  return 2;
}
