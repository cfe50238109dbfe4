// SPDX-License-Identifier: MIT
// poke vm|ptrace|mem PID ADDRESS, poke fd PID FD: writes into another process's memory, or into a
// file through its descriptor.
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <string>
#include <string_view>

#include "attack.hpp"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  std::string_view way = argv[1];
  auto pid = static_cast<pid_t>(atoi(argv[2]));
  unsigned long address = strtoul(argv[3], nullptr, 0);
  long value = 0x41414141;
  if (way == "vm") {
    iovec here{&value, sizeof value};
    iovec there{reinterpret_cast<void*>(address), sizeof value};
    return ended(process_vm_writev(pid, &here, 1, &there, 1, 0));
  }
  if (way == "ptrace") {
    if (ptrace(PTRACE_ATTACH, pid, 0, 0) != 0) return 1;
    waitpid(pid, nullptr, 0);
    long result = ptrace(PTRACE_POKEDATA, pid, address, value);
    ptrace(PTRACE_DETACH, pid, 0, 0);
    return ended(result);
  }
  if (way == "mem") {
    int fd = open(("/proc/" + std::to_string(pid) + "/mem").c_str(), O_RDWR);
    if (fd < 0) return 1;
    return ended(pwrite(fd, &value, sizeof value, static_cast<off_t>(address)));
  }
  long pidfd = syscall(SYS_pidfd_open, pid, 0);
  if (pidfd < 0) return 1;
  long fd = syscall(SYS_pidfd_getfd, pidfd, static_cast<int>(address), 0);
  if (fd < 0) return 1;
  return ended(write(static_cast<int>(fd), "x", 1));
}
