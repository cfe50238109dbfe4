// SPDX-License-Identifier: MIT
// withhold [--landlock] [--namespaces] -- ARGV...: runs ARGV on a kernel that seems to lack them,
// as an old kernel or a container's seccomp profile makes it: no such system call, or EPERM for new
// mount and user namespaces.
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

int main(int argc, char** argv) {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  int i = 1;
  int failed = filter ? 0 : 1;
  for (; i < argc && strcmp(argv[i], "--") != 0; ++i) {
    if (strcmp(argv[i], "--landlock") == 0) {
      for (int number : {444, 445, 446})
        failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), number, 0);
    } else if (strcmp(argv[i], "--namespaces") == 0) {
      // glibc and others fall back to clone, whose flags can be looked at.
      failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
      for (unsigned long flag : {CLONE_NEWUSER + 0UL, CLONE_NEWNS + 0UL}) {
        const scmp_arg_cmp has_flag{0, SCMP_CMP_MASKED_EQ, flag, flag};
        for (int number : {SCMP_SYS(clone), SCMP_SYS(unshare)})
          failed |= seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), number, 1, &has_flag);
      }
    } else {
      fprintf(stderr, "withhold: unknown argument %s\n", argv[i]);
      return 2;
    }
  }
  if (failed || i + 1 >= argc || seccomp_load(filter) != 0) {
    fprintf(stderr, "withhold: cannot set up\n");
    return 2;
  }
  seccomp_release(filter);
  execvp(argv[i + 1], argv + i + 1);
  perror("withhold");
  return 127;
}
