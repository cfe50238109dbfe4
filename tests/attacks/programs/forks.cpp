// SPDX-License-Identifier: MIT
// forks COUNT MARK: leaves COUNT processes behind, each in a session of its own with nobody that
// knows it. They end by themselves after a minute.
#include <signal.h>
#include <sys/wait.h>

#include "attack.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (int i = atoi(argv[1]); i > 0; --i) {
    pid_t child = fork();
    if (child < 0) break;
    if (child > 0) {
      waitpid(child, nullptr, 0);
      continue;
    }
    setsid();
    if (fork() != 0) _exit(0);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    for (int fd = 0; fd < 3; ++fd) close(fd);
    alarm(60);
    for (;;) pause();
  }
  return 0;
}
