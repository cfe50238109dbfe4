// SPDX-License-Identifier: MIT
// Nothing here may touch what the host's threads use at the same time: no allocation, no lock, no
// thread-local variable. errno is one, so system calls are made without the C library. Compiled
// without sanitizers, which keep such state of their own.
#include "framework/child_linux.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stockade {

namespace {

// The kernel's answer: a value, or a negated errno.
#if defined(__x86_64__)
long call(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
long call(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#else
#define STOCKADE_CHILD_USES_ERRNO
long call(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
  const long result = syscall(number, a, b, c, d);
  return result < 0 ? -errno : result;
}
#endif

long word(const volatile void* pointer) {
  return reinterpret_cast<long>(pointer);
}

constexpr long kCloseRange = 436;
constexpr int kSignals = 64;
constexpr long kSignalSetSize = 8;

[[noreturn]] void give_up(ChildPlan& plan, ChildPlan::Step step, long error) {
  plan.failed = step;
  plan.error = static_cast<int>(-error);
  for (;;) call(SYS_exit_group, 127);
}

void default_signals() {
  const unsigned long action[8] = {};  // the kernel's sigaction: SIG_DFL, no flag, an empty mask
  for (int number = 1; number <= kSignals; ++number)
    call(SYS_rt_sigaction, number, word(action), 0, kSignalSetSize);
}

void close_above(int last) {
  if (call(kCloseRange, last + 1, ~0U) == 0) return;
  for (int fd = last + 1; fd < 65536; ++fd) call(SYS_close, fd);  // before Linux 5.9
}

void place(int from, int to) {
  while (call(SYS_dup3, from, to) == -EBUSY) {
  }
}

}  // namespace

#if defined(STOCKADE_CHILD_USES_ERRNO)
const bool kChildRunsBeside = false;
#else
const bool kChildRunsBeside = true;
#endif

int run_child(void* data) {
  ChildPlan& plan = *static_cast<ChildPlan*>(data);
  default_signals();
  call(SYS_setsid);
  // Before anything is opened, so that its errors are told apart from those of exec.
  if (long error = call(SYS_chdir, word(plan.directory)); error < 0)
    give_up(plan, ChildPlan::directory_step, error);
  int last = 2;
  for (int fd = 0; fd < 4; ++fd) {
    if (plan.descriptors[fd] < 0) continue;
    place(plan.descriptors[fd], fd);
    if (fd == 3) last = 3;
  }
  close_above(last);
  if (plan.descriptors[0] < 0) {
    call(SYS_close, 0);  // the lowest that is free is what open gives
    long error = call(SYS_openat, AT_FDCWD, word("/dev/null"), O_RDONLY);
    if (error < 0) give_up(plan, ChildPlan::null_step, error);
  }
  const unsigned long mask = plan.block_term ? 1UL << (SIGTERM - 1) : 0;
  call(SYS_rt_sigprocmask, SIG_SETMASK, word(&mask), 0, kSignalSetSize);

  long error = -ENOENT;
  for (const char* const* program = plan.programs; *program; ++program) {
    const long failure = call(SYS_execve, word(*program), word(plan.argv), word(plan.environment));
    const bool passed_over = failure == -ENOENT || failure == -ENOTDIR || failure == -EACCES;
    if (!passed_over || error != -EACCES) error = failure;
    if (!passed_over) break;
  }
  give_up(plan, ChildPlan::program_step, error);
}

}  // namespace stockade
