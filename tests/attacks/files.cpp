// SPDX-License-Identifier: MIT
// Contents and names of files outside the workspace.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/attacks/attack.hpp"

namespace stockade::test {

namespace {

void hold_fifo(Place& place) {
  // Kept open, so that a writer finds a reader and what it wrote stays.
  int fd = open((place.outside + "/fifo").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  place.holds = [fd] {
    char byte = 0;
    bool written = read(fd, &byte, 1) == 1;
    close(fd);
    return written;
  };
}

bool looked(const Place& place) {
  return place.holds();
}

void hard_link(Place& place) {
  if (link((place.outside + "/f").c_str(), (place.inside + "/hard").c_str()) != 0)
    place.holds = nullptr;
}

void submount(Place& place) {
  place.mount_tmpfs(place.outside + "/mnt");
}

void bound_inside(Place& place) {
  mkdir((place.inside + "/bound").c_str(), 0755);
  place.bind(place.outside, place.inside + "/bound");
}

void device_judge(Place& place) {
  std::string node = place.inside + "/node";
  place.holds = [node] { return exists(node); };
}

void expect_absent(Place& place, const std::string& path) {
  unlink(path.c_str());
  place.holds = [path] {
    bool there = exists(path);
    unlink(path.c_str());
    return there;
  };
}

void absent_in_shm(Place& place) {
  expect_absent(place, "/dev/shm/stockade-attack");
}

void absent_in_tmp(Place& place) {
  expect_absent(place, "/tmp/stockade-attack");
}

// As a host that forgot to mark its descriptors would.
void leak(Place& place) {
  const std::pair<int, std::string> leaked[] = {{207, "/m"}, {208, ""}, {209, "/held"}};
  for (const auto& [number, name] : leaked) {
    int fd = open((place.outside + name).c_str(), number == 209 ? O_RDWR : O_RDONLY);
    dup2(fd, number);
    close(fd);
  }
  place.cleanup = [] {
    for (int fd = 207; fd < 210; ++fd) close(fd);
  };
}

void tmp_itself(Place& place) {
  chmod("/tmp", 01777);
  place.holds = [] {
    struct stat info {};
    bool was = stat("/tmp", &info) != 0 || (info.st_mode & 07777) != 01777;
    chmod("/tmp", 01777);
    return was;
  };
}

}  // namespace

std::vector<Attack> file_attacks() {
  constexpr unsigned kLeaked = Attack::direct | Attack::alone;
  constexpr const char* kWorkspaceWrite = "*/workspace-write/*";
  return {
      {"write a file", "echo x > $O/f"},
      {"append to a file", "echo x >> $O/f"},
      {"truncate(2)", "$P/names truncate $O/f"},
      {"open O_RDONLY|O_TRUNC", "$P/names open-truncate $O/f"},
      {"make a file", "echo x > $O/new"},
      {"make a file on a mount below", "touch $O/mnt/x", "", Attack::mounts, submount},
      {"make a directory", "mkdir $O/new"},
      {"remove a directory", "rmdir $O/empty"},
      {"remove a file", "rm -f $O/u"},
      {"rename", "mv $O/r $O/r2"},
      {"move out of the workspace", "mv $W/a $O/a"},
      {"move a directory out", "mv $W/d $O/d2"},
      {"exchange two names", "$P/names exchange $O/r $W/a"},
      {"hard link into the workspace", "ln $O/f $W/hl; echo x >> $W/hl"},
      {"hard link out of the workspace", "ln $W/a $O/hl"},
      {"hard link that is inside already", "echo x >> $W/hard", kWorkspaceWrite, Attack::granted,
       hard_link},
      {"symbolic link inside to a file outside", "ln -sf $O/f $W/sl; echo x > $W/sl"},
      {"symbolic link inside to a directory", "ln -s $O $W/dir; echo x > $W/dir/new"},
      {"symbolic link outside", "ln -s f $O/sl"},
      {"walk by ..", "cd $W; echo x > d/../../../outside/${O##*/}/f"},
      {"re-open by /proc/self/fd", "exec 5<$O/f; echo x > /proc/self/fd/5"},
      {"/proc/self/root", "echo x > /proc/self/root$O/f"},
      {"make a FIFO", "mkfifo $O/pipe"},
      {"write into a FIFO", "exec 5<>$O/fifo; echo x >&5", "", Attack::none, hold_fifo, looked},
      {"bind a unix socket", "cd $O; $P/names bind new"},
      {"O_TMPFILE and linkat", "$P/names tmpfile $O $O/new"},
      {"core dump", "cd $O; ulimit -c unlimited; sh -c 'kill -SEGV $$'"},
      {"bind mount that is inside already", "echo x > $W/bound/new", kWorkspaceWrite,
       Attack::mounts | Attack::granted, bound_inside},
      {"chmod in a bind mount inside", "chmod 711 $W/bound/m", kWorkspaceWrite,
       Attack::mounts | Attack::granted, bound_inside},
      {"make a block device inside", "mknod $W/node b 7 0", "", Attack::root_only, device_judge,
       looked},
      {"make a character device inside", "mknod $W/node c 1 5", "", Attack::root_only, device_judge,
       looked},
      {"write the host's /dev/shm", "echo x > /dev/shm/stockade-attack",
       "landlock/workspace-write/*", Attack::mounts | Attack::granted, absent_in_shm, looked},
      {"write the host's /tmp", "echo x > /tmp/stockade-attack", "landlock/workspace-write/*",
       Attack::mounts | Attack::granted, absent_in_tmp, looked},
      {"change the mode of the host's /tmp", "chmod 700 /tmp", "",
       Attack::mounts | Attack::root_only, tmp_itself, looked},
      {"io_uring openat", "$P/io_uring truncate $O/f"},
      {"io_uring unlinkat", "$P/io_uring unlink $O/u"},
      {"inherited descriptor of a file", "echo x >&209", "", kLeaked, leak},
      {"inherited descriptor of a directory", "touch /proc/self/fd/208/new", "", kLeaked, leak},
      {"inherited descriptor, mode", "chmod 711 /proc/self/fd/207", "", kLeaked, leak},
  };
}

}  // namespace stockade::test
