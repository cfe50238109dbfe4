// SPDX-License-Identifier: MIT
// The launcher's floor: system calls without a C library. Its start is part of every confined call,
// and the static start of a C library costs more than everything that the launcher does.
//
// Every function here returns what the kernel returns: a value, or a negated errno.
#pragma once

#include <asm/unistd.h>
#include <stddef.h>
#include <stdint.h>

// In start.cpp.
extern "C" {
void* memcpy(void* to, const void* from, size_t size);
void* memmove(void* to, const void* from, size_t size);
void* memset(void* to, int value, size_t size);
// clone() that calls `entry(argument)` on the stack that ends at `stack_end`, in the same memory;
// `entry` never returns.
long stockade_launch_clone(unsigned long flags, void* stack_end, void (*entry)(void*),
                           void* argument);
}

namespace launcher {

#if defined(__x86_64__)
inline long syscall6(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
inline long syscall6(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}
#else
#error "stockade-launch knows x86-64 and arm64"
#endif

template <typename T>
inline long word(T value) {
  return static_cast<long>(value);
}
template <typename T>
inline long word(T* value) {
  return reinterpret_cast<long>(value);
}
inline long word(decltype(nullptr)) {
  return 0;
}

template <typename... Arguments>
inline long sys(long number, Arguments... arguments) {
  static_assert(sizeof...(Arguments) <= 6);
  long all[7] = {word(arguments)..., 0};
  return syscall6(number, all[0], sizeof...(Arguments) > 1 ? all[1] : 0,
                  sizeof...(Arguments) > 2 ? all[2] : 0, sizeof...(Arguments) > 3 ? all[3] : 0,
                  sizeof...(Arguments) > 4 ? all[4] : 0, sizeof...(Arguments) > 5 ? all[5] : 0);
}

// The kernel's numbers where distributions' headers stop at older kernels.
inline constexpr long kOpenTree = 428;
inline constexpr long kMoveMount = 429;
inline constexpr long kPidfdOpen = 434;
inline constexpr long kCloseRange = 436;
inline constexpr long kOpenat2 = 437;
inline constexpr long kMountSetattr = 442;
inline constexpr long kLandlockCreateRuleset = 444;
inline constexpr long kLandlockAddRule = 445;
inline constexpr long kLandlockRestrictSelf = 446;

[[noreturn]] inline void exit_now(int code) {
  for (;;) sys(__NR_exit_group, code);
}

inline void close_fd(int fd) {
  sys(__NR_close, fd);
}

inline bool same(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

inline size_t length(const char* text) {
  size_t size = 0;
  while (text[size]) ++size;
  return size;
}

// True when `path` is `ancestor` or below it.
inline bool is_within(const char* path, const char* ancestor) {
  if (same(ancestor, "/")) return true;
  while (*ancestor && *path == *ancestor) ++path, ++ancestor;
  return !*ancestor && (!*path || *path == '/');
}

// Text into a bounded buffer, always terminated; what does not fit is cut off.
template <size_t kSize>
class Text {
 public:
  Text() { buffer_[0] = '\0'; }  // the rest is left: clearing it would cost more than filling it
  Text& add(const char* text) {
    while (*text && size_ < kSize - 1) buffer_[size_++] = *text++;
    buffer_[size_] = '\0';
    return *this;
  }
  Text& add(long number) {
    char digits[24];
    int at = sizeof digits;
    bool negative = number < 0;
    unsigned long rest =
        negative ? 0UL - static_cast<unsigned long>(number) : static_cast<unsigned long>(number);
    digits[--at] = '\0';
    do digits[--at] = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (negative) digits[--at] = '-';
    return add(digits + at);
  }
  // As the inside of a JSON string; bytes that are not printable ASCII become `?`. Leaves room for
  // what closes the object.
  Text& add_escaped(const char* text) {
    for (; *text && size_ + 256 < kSize; ++text) {
      auto byte = static_cast<unsigned char>(*text);
      if (byte == '"' || byte == '\\') buffer_[size_++] = '\\';
      buffer_[size_++] = byte < 0x20 || byte >= 0x7f ? '?' : *text;
    }
    buffer_[size_] = '\0';
    return *this;
  }
  const char* c_str() const { return buffer_; }
  size_t size() const { return size_; }

 private:
  char buffer_[kSize];
  size_t size_ = 0;
};

// Text of this process in the file system of processes, `/proc/PID/NAME`.
inline Text<64> proc_path(long pid, const char* name) {
  Text<64> path;
  path.add("/proc/").add(pid).add(name);
  return path;
}

}  // namespace launcher
