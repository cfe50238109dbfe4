// SPDX-License-Identifier: MIT
#include "sandbox-local/launcher/namespace.hpp"

#include <errno.h>
#include <linux/fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/stat.h>

#include "sandbox-local/launcher/report.hpp"
#include "sandbox-local/launcher/sys.hpp"

namespace launcher {

namespace {

constexpr unsigned kAtRecursive = 0x8000;
constexpr unsigned kOpenTreeClone = 1;
constexpr unsigned kMoveFromEmptyPath = 4;
constexpr unsigned kMoveToEmptyPath = 0x40;
constexpr uint64_t kMountReadOnly = 1;  // MOUNT_ATTR_RDONLY
constexpr uint64_t kMsPrivate = 1 << 18;
constexpr unsigned long kMsReadOnly = 1;
constexpr unsigned long kMsNosuid = 2;
constexpr unsigned long kMsNodev = 4;
constexpr unsigned long kMsNoexec = 8;
constexpr short kInterfaceUp = 1;

struct MountAttributes {
  uint64_t set;
  uint64_t clear;
  uint64_t propagation;
  uint64_t user_namespace;
};

void write_file(const char* path, const char* text) {
  long fd = sys(__NR_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) refuse("cannot open", path, fd);
  long written = sys(__NR_write, fd, text, length(text));
  close_fd(static_cast<int>(fd));
  if (written < 0) refuse("cannot write", path, written);
}

// The user keeps the number that it has, and only that one exists.
void map_user(unsigned user, unsigned group) {
  write_file("/proc/self/setgroups", "deny");
  Text<64> map;
  map.add(static_cast<long>(user)).add(" ").add(static_cast<long>(user)).add(" 1");
  write_file("/proc/self/uid_map", map.c_str());
  Text<64> groups;
  groups.add(static_cast<long>(group)).add(" ").add(static_cast<long>(group)).add(" 1");
  write_file("/proc/self/gid_map", groups.c_str());
}

// A private copy of the mounts at and below `fd`, not attached anywhere yet.
int copy_tree(long fd, const char* path) {
  long tree = sys(kOpenTree, fd, "", kOpenTreeClone | kAtRecursive | AT_EMPTY_PATH | O_CLOEXEC);
  if (tree < 0) refuse("cannot copy the mounts of", path, tree);
  MountAttributes isolate{0, 0, kMsPrivate, 0};
  long error = sys(kMountSetattr, tree, "", AT_EMPTY_PATH | kAtRecursive, &isolate, sizeof isolate);
  if (error) refuse("cannot isolate the mounts of", path, error);
  close_fd(static_cast<int>(fd));
  return static_cast<int>(tree);
}

// The place must be reached without a link, as the tree's own path was.
void attach(int tree, const char* path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  long place = sys(kOpenat2, AT_FDCWD, path, &how, sizeof how);
  if (place < 0) refuse("cannot find the place of", path, place);
  long error = sys(kMoveMount, tree, "", place, "", kMoveFromEmptyPath | kMoveToEmptyPath);
  if (error) refuse("cannot mount", path, error);
  close_fd(static_cast<int>(place));
  close_fd(tree);
}

// Directories of a path below /tmp, in the empty directory that stands there now.
void make_directories(const char* path) {
  Text<4096> part;
  for (const char* at = path; *at; ++at) {
    if (*at == '/' && part.size() > 0) sys(__NR_mkdirat, AT_FDCWD, part.c_str(), 0755);
    char letter[2] = {*at, '\0'};
    part.add(letter);
  }
  sys(__NR_mkdirat, AT_FDCWD, path, 0755);
}

bool is_directory(const char* path) {
  struct statx info {};
  return sys(__NR_statx, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &info) == 0 &&
         (info.stx_mode & 0170000) == 0040000;
}

void mount_new(const char* type, const char* path, unsigned long flags, const char* options) {
  if (long error = sys(__NR_mount, type, path, type, flags, options))
    refuse("cannot mount", path, error);
}

// Of a path inside the view; -1 when it does not exist, any more or yet.
int copy_inside(const char* path) {
  long fd = open_rule(Rule{path, kReadOnly, Follow::no_links});
  if (fd == -ENOENT || fd == -ENOTDIR) return -1;
  if (fd < 0) refuse("cannot open", path, fd);
  return copy_tree(fd, path);
}

// An empty directory that cannot be written stands in a directory's place, /dev/null in a file's.
void hide(const char* path) {
  long fd = open_rule(Rule{path, kReadOnly, Follow::no_links});
  if (fd == -ENOENT || fd == -ENOTDIR) return;
  if (fd < 0) refuse("cannot open", path, fd);
  close_fd(static_cast<int>(fd));
  if (is_directory(path)) {
    mount_new("tmpfs", path, kMsNosuid | kMsNodev | kMsNoexec | kMsReadOnly, "mode=555,size=4k");
    return;
  }
  long null = sys(__NR_openat, AT_FDCWD, "/dev/null", O_PATH | O_CLOEXEC);
  if (null < 0) refuse("cannot open", "/dev/null", null);
  attach(copy_tree(null, "/dev/null"), path);
}

// Loopback, so that a test's own server can be reached by the test.
void raise_loopback() {
  struct {
    char name[16];
    short flags;
    char rest[22];
  } request{"lo", kInterfaceUp, {}};
  long socket = sys(__NR_socket, 2 /* AF_INET */, 2 /* SOCK_DGRAM */ | O_CLOEXEC, 0);
  if (socket < 0) return;  // no IPv4: then there is nothing to reach
  sys(__NR_ioctl, socket, 0x8914 /* SIOCSIFFLAGS */, &request);
  close_fd(static_cast<int>(socket));
}

}  // namespace

Namespaces namespaces(bool without_network) {
  bool user = !has_mount_capability();
  unsigned long flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC;
  if (user) flags |= CLONE_NEWUSER;
  if (without_network) flags |= CLONE_NEWNET;
  return {flags, user, without_network};
}

void build_view(const View& view, const Namespaces& made, unsigned user, unsigned group) {
  if (made.user_namespace) map_user(user, group);
  if (view.writable_count > kMaxRules) refuse("too many writable directories");

  // Taken out while they are still as the host has them.
  int trees[kMaxRules];
  for (int i = 0; i < view.writable_count; ++i) {
    long fd = open_rule(view.writable[i]);
    if (fd < 0) refuse("cannot open", view.writable[i].path, fd);
    trees[i] = copy_tree(fd, view.writable[i].path);
  }
  int tmp = -1;
  if (view.tmp) {
    long fd = open_rule(Rule{view.tmp, kReadWrite, Follow::no_links});
    if (fd < 0) refuse("cannot open", view.tmp, fd);
    tmp = copy_tree(fd, view.tmp);
  }

  // Private, too: a mount that the host makes later does not appear here.
  MountAttributes read_only{kMountReadOnly, 0, kMsPrivate, 0};
  if (long error = sys(kMountSetattr, AT_FDCWD, "/", kAtRecursive, &read_only, sizeof read_only))
    refuse("cannot make / read-only", nullptr, error);

  if (tmp >= 0) {
    attach(tmp, "/tmp");
    for (int i = 0; i < view.writable_count; ++i)
      if (is_within(view.writable[i].path, "/tmp")) make_directories(view.writable[i].path);
  }
  for (int i = 0; i < view.writable_count; ++i) attach(trees[i], view.writable[i].path);

  // Where a mount is, nothing can be renamed: a parent that could be moved away would take the
  // protected path along, and another could be put in its place.
  for (int i = 0; i < view.pinned_count; ++i)
    if (int tree = copy_inside(view.pinned[i]); tree >= 0) attach(tree, view.pinned[i]);
  for (int i = 0; i < view.read_only_count; ++i) {
    int tree = copy_inside(view.read_only[i]);
    if (tree < 0) continue;
    long error =
        sys(kMountSetattr, tree, "", AT_EMPTY_PATH | kAtRecursive, &read_only, sizeof read_only);
    if (error) refuse("cannot make read-only", view.read_only[i], error);
    attach(tree, view.read_only[i]);
  }
  for (int i = 0; i < view.hidden_count; ++i) hide(view.hidden[i]);

  // Read-only, as user 0 may write /proc/sys/kernel/core_pattern by its number alone, which is code
  // that the host runs as root.
  mount_new("proc", "/proc", kMsNosuid | kMsNodev | kMsNoexec | kMsReadOnly, nullptr);
  // Terminals of its own: the host's are files that its user may write to.
  if (is_directory("/dev/pts"))
    mount_new("devpts", "/dev/pts", kMsNosuid | kMsNoexec, "newinstance,ptmxmode=0666,mode=620");
  if (view.writable_count > 0 && is_directory("/dev/shm"))
    mount_new("tmpfs", "/dev/shm", kMsNosuid | kMsNodev, "mode=1777");

  if (made.network) raise_loopback();
  if (!view.workdir) return;
  if (long error = sys(__NR_chdir, view.workdir))
    refuse("cannot enter the working directory", view.workdir, error);
}

void reopen_null() {
  for (int fd = 0; fd < 3; ++fd) {
    struct statx info {};
    if (sys(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE, &info) != 0) continue;
    bool is_null = (info.stx_mode & 0170000) == 0020000 && info.stx_rdev_major == 1 &&
                   info.stx_rdev_minor == 3;
    if (!is_null) continue;
    long flags = sys(__NR_fcntl, fd, 3 /* F_GETFL */, 0);
    long fresh = sys(__NR_openat, AT_FDCWD, "/dev/null", (flags & O_ACCMODE) | O_CLOEXEC);
    if (fresh < 0) refuse("cannot open", "/dev/null", fresh);
    sys(__NR_dup3, fresh, fd, 0);
    close_fd(static_cast<int>(fresh));
  }
}

}  // namespace launcher
