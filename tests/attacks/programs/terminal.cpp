// SPDX-License-Identifier: MIT
// terminal inject: types into the controlling terminal.
// terminal on SLAVE COMMAND...: runs COMMAND with SLAVE as its controlling terminal.
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include <string_view>

#include "attack.hpp"

int main(int argc, char** argv) {
  if (argc == 2) {
    int fd = open("/dev/tty", O_RDWR);
    for (int i = 0; i < 3; ++i) ioctl(i, TIOCSTI, "#");
    return fd < 0 ? 1 : ended(ioctl(fd, TIOCSTI, "#"));
  }
  if (argc < 4) return 2;
  pid_t child = fork();
  if (child == 0) {
    setsid();
    int slave = open(argv[2], O_RDWR);
    if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) != 0) _exit(126);
    close(slave);
    execvp(argv[3], argv + 3);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
