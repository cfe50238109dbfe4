// SPDX-License-Identifier: MIT
// foreign_abi i386|x32 PATH: changes the mode by the numbers of another system call table.
#include <signal.h>
#include <sys/mman.h>

#include <string_view>

#include "attack.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
#ifdef __x86_64__
  signal(SIGSEGV, [](int) { impossible("this kernel runs no 32-bit programs"); });
  auto* low = static_cast<char*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0));
  if (low == MAP_FAILED || strlen(argv[2]) >= 4096) return 1;
  strcpy(low, argv[2]);
  long result = 0;
  if (std::string_view(argv[1]) == "i386") {
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(15L), "b"(low), "c"(0711L)
                     : "memory", "r8", "r9", "r10", "r11");
    result = static_cast<int>(result);
  } else {
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(0x40000000L | 90), "D"(low), "S"(0711L)
                     : "rcx", "r11", "memory");
  }
  if (result == -ENOSYS) impossible("this kernel has no such system call table");
  return result == 0 ? 0 : 1;
#else
  impossible("this machine has one system call table");
#endif
}
