// SPDX-License-Identifier: MIT
// other_root DIRECTORY PATH: changes the mode of PATH as it is seen with DIRECTORY as the root,
// with the right to set a root that a user namespace gives.
#include <sched.h>
#include <sys/stat.h>

#include "attack.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (unshare(CLONE_NEWUSER) != 0) return 1;
  if (chroot(argv[1]) != 0) return 1;
  return ended(chmod(argv[2], 0711));
}
