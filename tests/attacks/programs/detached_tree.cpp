// SPDX-License-Identifier: MIT
// detached_tree DIRECTORY NAME: changes the mode of NAME below DIRECTORY through a copy of its
// mount that is attached nowhere. There the kernel gives the object the path /NAME, whatever it has
// here.
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "attack.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  // Shares the descriptors, so the tree that it opens is open here.
  long child = syscall(SYS_clone, CLONE_FILES | CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);
  if (child < 0) return 1;
  if (child == 0) {
    long tree = syscall(SYS_open_tree, AT_FDCWD, argv[1], 1 /* OPEN_TREE_CLONE */);
    _exit(tree < 0 ? 0 : static_cast<int>(tree));
  }
  int status = 0;
  waitpid(static_cast<pid_t>(child), &status, 0);
  int tree = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (tree == 0) return 1;
  return ended(fchmodat(tree, argv[2], 0711, 0));
}
