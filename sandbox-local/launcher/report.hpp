// SPDX-License-Identifier: MIT
// How the launcher says what it did: on the status channel when it has one (sandbox/status.hpp),
// else as one line on stderr, in the words of the command-line contract.
#pragma once

namespace launcher {

inline constexpr int kRefused = 125;

// What the processes of one launcher share, which all are in one memory: the one that confines
// tells the one that waits.
struct Shared {
  int reported;         // the command never ran, and a report says why
  int listener;         // descriptor of the metadata filter's listener, or -1
  int wait_status;      // of the command, as wait4 gives it
  int has_wait_status;  // it ended
  int end_reported;     // and the host was told
};

// Before anything else that can fail. `status_fd` is 0 when there is no channel.
void open_report(int status_fd, Shared* shared);
int status_descriptor();  // -1 without one

// The sandbox could not be set up; `error` is a negated errno or 0. Exits with 125.
[[noreturn]] void refuse(const char* what, const char* operand = nullptr, long error = 0);
[[noreturn]] void usage_error(const char* what, const char* operand = "");

// Just before exec.
void report_ready(int landlock_abi);
[[noreturn]] void report_exec_failed(const char* program, long error);
// After the command and all that it started: the kernel's own word on how it ended.
void report_end(int wait_status);

}  // namespace launcher
