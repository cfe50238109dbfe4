// SPDX-License-Identifier: MIT
// Where the kernel enters, and the four functions that a compiler takes for granted.
#include "sandbox-local/launcher/sys.hpp"

namespace launcher {
int run(int argc, char** argv, char** environment);
}

extern "C" {

void* memcpy(void* to, const void* from, size_t size) {
  auto* out = static_cast<unsigned char*>(to);
  auto* in = static_cast<const unsigned char*>(from);
  while (size--) *out++ = *in++;
  return to;
}

void* memmove(void* to, const void* from, size_t size) {
  auto* out = static_cast<unsigned char*>(to);
  auto* in = static_cast<const unsigned char*>(from);
  if (out < in) return memcpy(to, from, size);
  while (size--) out[size] = in[size];
  return to;
}

void* memset(void* to, int value, size_t size) {
  auto* out = static_cast<unsigned char*>(to);
  while (size--) *out++ = static_cast<unsigned char>(value);
  return to;
}

int memcmp(const void* a, const void* b, size_t size) {
  auto* x = static_cast<const unsigned char*>(a);
  auto* y = static_cast<const unsigned char*>(b);
  for (; size; --size, ++x, ++y)
    if (*x != *y) return *x < *y ? -1 : 1;
  return 0;
}

// The stack as the kernel leaves it: the count, the arguments, a null, the environment.
[[noreturn, gnu::used]] void stockade_launch_start(long* stack) {
  auto argc = static_cast<int>(stack[0]);
  auto** argv = reinterpret_cast<char**>(stack + 1);
  launcher::exit_now(launcher::run(argc, argv, argv + argc + 1));
}

#if defined(__x86_64__)
__asm__(
    ".globl _start\n"
    "_start: xor %ebp, %ebp\n"
    "mov %rsp, %rdi\n"
    "and $-16, %rsp\n"
    "call stockade_launch_start\n"
    // Flags, the top of a stack, a function and its argument.
    ".globl stockade_launch_clone\n"
    "stockade_launch_clone:\n"
    "and $-16, %rsi\n"
    "sub $16, %rsi\n"
    "mov %rdx, (%rsi)\n"
    "mov %rcx, 8(%rsi)\n"
    "xor %edx, %edx\n"
    "xor %r10d, %r10d\n"
    "xor %r8d, %r8d\n"
    "mov $56, %eax\n"
    "syscall\n"
    "test %rax, %rax\n"
    "jnz 1f\n"
    "xor %ebp, %ebp\n"
    "pop %rdx\n"
    "pop %rdi\n"
    "call *%rdx\n"
    "hlt\n"
    "1: ret\n");
#elif defined(__aarch64__)
__asm__(
    ".globl _start\n"
    "_start: mov x29, #0\n"
    "mov x30, #0\n"
    "mov x0, sp\n"
    "and sp, x0, #-16\n"
    "bl stockade_launch_start\n"
    ".globl stockade_launch_clone\n"
    "stockade_launch_clone:\n"
    "and x1, x1, #-16\n"
    "stp x2, x3, [x1, #-16]!\n"
    "mov x2, xzr\n"
    "mov x3, xzr\n"
    "mov x4, xzr\n"
    "mov x8, #220\n"
    "svc #0\n"
    "cbnz x0, 1f\n"
    "mov x29, xzr\n"
    "mov x30, xzr\n"
    "ldp x1, x0, [sp], #16\n"
    "blr x1\n"
    "brk #0\n"
    "1: ret\n");
#endif

}  // extern "C"
