// SPDX-License-Identifier: MIT
// metadata CALL PATH: changes one piece of metadata of PATH by one system call.
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#include <cstdint>
#include <string_view>

#include "attack.hpp"

namespace {

constexpr long kFchmodat2 = 452;
constexpr long kSetxattrat = 463;
constexpr long kRemovexattrat = 466;
constexpr long kFileGetattr = 468;
constexpr long kFileSetattr = 469;

struct XattrArguments {
  uint64_t value;
  uint32_t size;
  uint32_t flags;
};

// version 2; the owner, the group, the mask, the others, and user 12345 with rwx
const unsigned char kAcl[] = {2,    0,    0,    0,    1,    0,    7,    0,    0xff, 0xff, 0xff,
                              0xff, 2,    0,    7,    0,    0x39, 0x30, 0,    0,    4,    0,
                              0,    0,    0xff, 0xff, 0xff, 0xff, 0x10, 0,    7,    0,    0xff,
                              0xff, 0xff, 0xff, 0x20, 0,    0,    0,    0xff, 0xff, 0xff, 0xff};
// revision 2, CAP_NET_RAW
const unsigned char kCapability[] = {0, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

long set_flags(int fd, unsigned long order_above) {
  int flags = 0;
  if (ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return -1;
  flags |= FS_NODUMP_FL;
  return syscall(SYS_ioctl, fd, order_above | FS_IOC_SETFLAGS, &flags);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::string_view call = argv[1];
  const char* path = argv[2];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  int handle = open(path, O_PATH | O_CLOEXEC);
  timespec times[2] = {{5, 0}, {5, 0}};
  timeval old_times[2] = {{5, 0}, {5, 0}};

  if (call == "chmod") return ended(syscall(SYS_chmod, path, 0711));
  if (call == "fchmod") return ended(syscall(SYS_fchmod, fd, 0711));
  if (call == "fchmodat") return ended(syscall(SYS_fchmodat, AT_FDCWD, path, 0711));
  if (call == "fchmodat2") return ended(syscall(kFchmodat2, AT_FDCWD, path, 0711, 0));
  if (call == "fchmodat2-empty") return ended(syscall(kFchmodat2, handle, "", 0711, AT_EMPTY_PATH));
  if (call == "chown") return ended(syscall(SYS_chown, path, getuid(), getgid()));
  if (call == "lchown") return ended(syscall(SYS_lchown, path, getuid(), getgid()));
  if (call == "fchown") return ended(syscall(SYS_fchown, fd, getuid(), getgid()));
  if (call == "fchownat")
    return ended(syscall(SYS_fchownat, handle, "", getuid(), getgid(), AT_EMPTY_PATH));
  if (call == "utime") {
    utimbuf seconds{5, 5};
    return ended(syscall(SYS_utime, path, &seconds));
  }
  if (call == "utimes") return ended(syscall(SYS_utimes, path, old_times));
  if (call == "futimesat") return ended(syscall(SYS_futimesat, AT_FDCWD, path, old_times));
  if (call == "utimensat") return ended(syscall(SYS_utimensat, AT_FDCWD, path, times, 0));
  if (call == "futimens") return ended(syscall(SYS_utimensat, fd, nullptr, times, 0));
  if (call == "setxattr") return ended(setxattr(path, "user.z", "1", 1, 0));
  if (call == "lsetxattr") return ended(lsetxattr(path, "user.z", "1", 1, 0));
  if (call == "fsetxattr") return ended(fsetxattr(fd, "user.z", "1", 1, 0));
  if (call == "setxattr-large") {
    static char value[2000];
    return ended(setxattr(path, "user.z", value, sizeof value, 0));
  }
  if (call == "removexattr") return ended(removexattr(path, "user.old"));
  if (call == "lremovexattr") return ended(lremovexattr(path, "user.old"));
  if (call == "fremovexattr") return ended(fremovexattr(fd, "user.old"));
  if (call == "setxattrat") {
    XattrArguments value{reinterpret_cast<uint64_t>("1"), 1, 0};
    return ended(syscall(kSetxattrat, AT_FDCWD, path, 0, "user.z", &value, sizeof value));
  }
  if (call == "removexattrat") return ended(syscall(kRemovexattrat, AT_FDCWD, path, 0, "user.old"));
  if (call == "acl") return ended(setxattr(path, "system.posix_acl_access", kAcl, sizeof kAcl, 0));
  if (call == "trusted") return ended(setxattr(path, "trusted.z", "1", 1, 0));
  if (call == "capability")
    return ended(setxattr(path, "security.capability", kCapability, sizeof kCapability, 0));
  if (call == "setflags") return ended(set_flags(fd, 0));
  // The kernel looks at 32 bits of the order; a filter may look at 64.
  if (call == "setflags-high-bits") return ended(set_flags(fd, 0xdeadUL << 32));
  if (call == "setversion") {
    long version = 4711;
    return ended(ioctl(fd, FS_IOC_SETVERSION, &version));
  }
  if (call == "fssetxattr") {
    fsxattr attributes{};
    if (ioctl(fd, FS_IOC_FSGETXATTR, &attributes) != 0) return ended(-1);
    attributes.fsx_xflags |= FS_XFLAG_NODUMP;
    return ended(ioctl(fd, FS_IOC_FSSETXATTR, &attributes));
  }
  if (call == "file_setattr") {
    uint64_t attributes[3] = {};
    if (syscall(kFileGetattr, AT_FDCWD, path, attributes, sizeof attributes, 0) != 0)
      return ended(-1);
    attributes[0] |= FS_XFLAG_NODUMP;
    return ended(syscall(kFileSetattr, AT_FDCWD, path, attributes, sizeof attributes, 0));
  }
  return 2;
}
