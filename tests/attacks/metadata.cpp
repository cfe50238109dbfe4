// SPDX-License-Identifier: MIT
// Metadata of files outside: what Landlock does not govern, and a supervisor could get wrong.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "tests/attacks/attack.hpp"

namespace stockade::test {

namespace {

bool looked(const Place& place) {
  return place.holds();
}

// A process of the same user's that lives in a view of its own, in which $O stands at $W.
void foreign_view(Place& place) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  pid_t pid = fork();
  if (pid == 0) {
    bool good =
        unshare(CLONE_NEWNS) == 0 &&
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        mount(place.outside.c_str(), place.inside.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
        setgid(place.uid) == 0 && setuid(place.uid) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0 &&
        prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
    if (!good || write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(ready[1]);
  char byte = 0;
  bool good = read(ready[0], &byte, 1) == 1;
  close(ready[0]);
  if (!good) throw std::runtime_error("no process in another view");
  write_file(place.inside + "/../foreign", std::to_string(pid));
  place.remember();
  std::string victim = place.outside + "/m";
  place.holds = [pid, victim] {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    struct stat info {};
    return stat(victim.c_str(), &info) != 0 || (info.st_mode & 07777) != 0644;
  };
}

// Outside lies what has, below $O, the same path as $W has below /.
void mirrored(Place& place) {
  std::filesystem::create_directories(place.outside + place.inside);
  std::string file = place.outside + place.inside + "/m";
  write_file(file, "untouched");
  place.give(file);
}

// In the workspace, root's and nobody else's: a command that has given root up may not have it.
void of_root(Place& place) {
  std::string file = place.inside + "/of-root";
  write_file(file, "x", 0600);
  chmod(place.inside.c_str(), 0777);
  place.holds = [file] {
    struct stat info {};
    return stat(file.c_str(), &info) != 0 || (info.st_mode & 07777) != 0600 || info.st_uid != 0;
  };
}

void null_device(Place& place) {
  struct stat before {};
  stat("/dev/null", &before);
  place.holds = [before] {
    struct stat now {};
    stat("/dev/null", &now);
    bool changed = now.st_mode != before.st_mode || now.st_mtim.tv_sec == 5;
    chmod("/dev/null", 0666);
    utimensat(AT_FDCWD, "/dev/null", nullptr, 0);
    return changed;
  };
}

}  // namespace

std::vector<Attack> metadata_attacks() {
  constexpr unsigned kNull = Attack::mounts | Attack::root_only | Attack::alone;
  return {
      {"chmod", "$P/metadata chmod $O/m"},
      {"fchmod on a descriptor for reading", "$P/metadata fchmod $O/m"},
      {"fchmodat", "$P/metadata fchmodat $O/m"},
      {"fchmodat2", "$P/metadata fchmodat2 $O/m"},
      {"fchmodat2 with AT_EMPTY_PATH", "$P/metadata fchmodat2-empty $O/m"},
      {"chmod of a directory", "chmod 700 $O/d"},
      {"chown", "$P/metadata chown $O/m"},
      {"lchown", "$P/metadata lchown $O/m"},
      {"fchown", "$P/metadata fchown $O/m"},
      {"fchownat with AT_EMPTY_PATH", "$P/metadata fchownat $O/m"},
      {"chown to another user", "chown 12345 $O/m", "", Attack::root_only},
      {"touch -d", "touch -d @1 $O/m"},
      {"utime", "$P/metadata utime $O/m"},
      {"utimes", "$P/metadata utimes $O/m"},
      {"futimesat", "$P/metadata futimesat $O/m"},
      {"utimensat", "$P/metadata utimensat $O/m"},
      {"futimens", "$P/metadata futimens $O/m"},
      {"setxattr", "$P/metadata setxattr $O/m"},
      {"lsetxattr", "$P/metadata lsetxattr $O/m"},
      {"fsetxattr", "$P/metadata fsetxattr $O/m"},
      {"setxattr of a large value", "$P/metadata setxattr-large $O/m"},
      {"removexattr", "$P/metadata removexattr $O/m"},
      {"lremovexattr", "$P/metadata lremovexattr $O/m"},
      {"fremovexattr", "$P/metadata fremovexattr $O/m"},
      {"setxattrat", "$P/metadata setxattrat $O/m"},
      {"removexattrat", "$P/metadata removexattrat $O/m"},
      {"file_setattr", "$P/metadata file_setattr $O/m"},
      {"POSIX ACL", "$P/metadata acl $O/m"},
      {"trusted attribute", "$P/metadata trusted $O/m", "", Attack::root_only},
      {"file capability", "$P/metadata capability $O/m", "", Attack::root_only},
      {"chattr", "chattr +d $O/m"},
      {"ioctl SETFLAGS", "$P/metadata setflags $O/m"},
      {"ioctl SETFLAGS with high bits", "$P/metadata setflags-high-bits $O/m"},
      {"ioctl SETVERSION", "$P/metadata setversion $O/m"},
      {"ioctl FSSETXATTR", "$P/metadata fssetxattr $O/m"},
      {"io_uring setxattr", "$P/io_uring setxattr $O/m"},
      {"chmod by /proc/self/fd", "exec 5<$O/m; $P/metadata chmod /proc/self/fd/5"},
      {"chmod by /dev/fd", "exec 5<$O/m; $P/metadata chmod /dev/fd/5"},
      {"chmod by /proc/thread-self/fd", "exec 5<$O/m; $P/metadata chmod /proc/thread-self/fd/5"},
      {"chmod by a link to /proc/self/fd",
       "exec 5<$O/m; ln -s /proc/self/fd/5 $W/l; $P/metadata chmod $W/l"},
      {"chmod by a link inside", "ln -s $O/m $W/l; $P/metadata chmod $W/l"},
      {"chmod by self/fd from /proc", "exec 5<$O/m; cd /proc; $P/metadata chmod self/fd/5"},
      {"chmod by /proc/self/root", "$P/metadata chmod /proc/self/root$O/m"},
      {"chmod by /proc/self/cwd", "cd $O; $P/metadata chmod /proc/self/cwd/m"},
      {"chmod by the working directory", "cd $O; $P/metadata chmod m"},
      {"chmod by /proc/PID/root of the runner", "$P/metadata chmod /proc/$L/root$O/m"},
      {"chmod by ..", "cd $W; $P/metadata chmod d/../../../outside/${O##*/}/m"},
      {"chmod by a link inside and ..", "ln -s $O/d $W/l; $P/metadata chmod $W/l/../m"},
      {"chmod by a link for AT_SYMLINK_NOFOLLOW", "ln -s $O $W/l; touch -h -d @5 $W/l/m"},
      {"chmod in a user namespace", "unshare -Ur chmod 711 $O/m"},
      {"chmod under another root", "$P/other_root $O /m"},
      {"chmod by a tree attached nowhere", "$P/detached_tree $O tmp/m"},
      {"chmod by a tree that holds the workspace's path", "$P/detached_tree $O ${W#/}/m", "",
       Attack::none, mirrored},
      {"chmod by another process's view", "$P/metadata chmod /proc/$(cat $W/../foreign)/root$W/m",
       "", Attack::mounts | Attack::direct, foreign_view, looked},
      {"chmod by the numbers of i386", "$P/foreign_abi i386 $O/m"},
      {"chmod by the numbers of x32", "$P/foreign_abi x32 $O/m"},
      {"4,000 chmods, the path flipping", "$P/race path $W/a $O/m"},
      {"4,000 chmods, a link flipping", "cd $W; $P/race link $W/a $O/m"},
      {"4,000 chmods, a directory's link flipping",
       "cd $W; echo x > d/m; $P/race directory $W/d $O"},
      {"/dev/null: times", "touch -d @5 /dev/null", "bwrap/*/root", kNull, null_device, looked},
      {"/dev/null: mode", "chmod 600 /dev/null", "bwrap/*/root", kNull, null_device, looked},
      {"standard input: mode", "chmod 600 /dev/stdin </dev/null; chmod 600 /proc/self/fd/0",
       "bwrap/*/root", kNull, null_device, looked},
      // What the command has given up must not come back through who acts for it.
      {"chmod of root's file by a user that was root", "$DROPPED $P/metadata chmod $W/of-root", "",
       Attack::root_only, of_root, looked},
  };
}

}  // namespace stockade::test
