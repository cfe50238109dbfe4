// SPDX-License-Identifier: MIT
#include "sandbox-local/launcher/report.hpp"

#include <errno.h>

#include "sandbox-local/launcher/sys.hpp"

namespace launcher {

namespace {

int status_fd = 0;
Shared* shared = nullptr;

const char* describe(long error) {
  switch (-error) {
    case EPERM:
      return "Operation not permitted";
    case ENOENT:
      return "No such file or directory";
    case EIO:
      return "Input/output error";
    case E2BIG:
      return "Argument list too long";
    case ENOEXEC:
      return "Exec format error";
    case EBADF:
      return "Bad file descriptor";
    case EAGAIN:
      return "Resource temporarily unavailable";
    case ENOMEM:
      return "Cannot allocate memory";
    case EACCES:
      return "Permission denied";
    case EBUSY:
      return "Device or resource busy";
    case EEXIST:
      return "File exists";
    case EXDEV:
      return "Invalid cross-device link";
    case ENODEV:
      return "No such device";
    case ENOTDIR:
      return "Not a directory";
    case EISDIR:
      return "Is a directory";
    case EINVAL:
      return "Invalid argument";
    case ENFILE:
      return "Too many open files in system";
    case EMFILE:
      return "Too many open files";
    case ETXTBSY:
      return "Text file busy";
    case ENOSPC:
      return "No space left on device";
    case EROFS:
      return "Read-only file system";
    case ENAMETOOLONG:
      return "File name too long";
    case ENOSYS:
      return "Function not implemented";
    case ELOOP:
      return "Too many levels of symbolic links";
    case EUSERS:
      return "Too many users";
    case EOPNOTSUPP:
      return "Operation not supported";
    default:
      return nullptr;
  }
}

using Line = Text<4096>;

template <size_t kSize>
void write_to(int fd, const Text<kSize>& text) {
  const char* data = text.c_str();
  size_t size = text.size();
  while (size > 0) {
    long n = sys(__NR_write, fd, data, size);
    if (n == -EINTR) continue;
    if (n <= 0) return;
    data += n;
    size -= static_cast<size_t>(n);
  }
}

void add_reason(Line& line, long error) {
  if (error == 0) return;
  line.add(": ");
  if (const char* known = describe(error))
    line.add(known);
  else
    line.add("errno ").add(-error);
}

[[noreturn]] void fail(const char* status, const char* what, const char* operand, long error) {
  if (shared) shared->reported = 1;
  Line line;
  if (status_fd > 0) {
    line.add("{\"status\":\"").add(status).add("\",\"message\":\"").add_escaped(what);
    if (operand) line.add(" ").add_escaped(operand);
    add_reason(line, error);
    line.add("\"}\n");
    write_to(status_fd, line);
  } else {
    line.add("landlock-run: ").add(what);
    if (operand) line.add(" ").add(operand);
    add_reason(line, error);
    line.add("\n");
    write_to(2, line);
  }
  exit_now(kRefused);
}

}  // namespace

void open_report(int fd, Shared* state) {
  status_fd = fd;
  shared = state;
}

int status_descriptor() {
  return status_fd > 0 ? status_fd : -1;
}

void refuse(const char* what, const char* operand, long error) {
  fail("refused", what, operand, error);
}

void usage_error(const char* what, const char* operand) {
  Line line;
  line.add("landlock-run: usage error: ").add(what).add(operand).add("\n");
  write_to(2, line);
  exit_now(kRefused);
}

void report_ready(int landlock_abi) {
  if (status_fd == 0) return;
  Text<128> line;
  line.add("{\"status\":\"ready\",\"landlockAbi\":").add(landlock_abi).add("}\n");
  write_to(status_fd, line);
}

void report_exec_failed(const char* program, long error) {
  fail("exec-failed", "cannot execute", program, error);
}

void report_end(int wait_status) {
  if (status_fd == 0) return;
  Text<128> line;
  int signal = wait_status & 0x7f;
  if (signal == 0)
    line.add("{\"status\":\"exited\",\"exitCode\":").add((wait_status >> 8) & 0xff);
  else
    line.add("{\"status\":\"signaled\",\"signal\":").add(signal);
  line.add("}\n");
  write_to(status_fd, line);
}

}  // namespace launcher
