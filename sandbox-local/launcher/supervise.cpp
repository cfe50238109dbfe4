// SPDX-License-Identifier: MIT
#include "sandbox-local/launcher/supervise.hpp"

#include <errno.h>
#include <linux/fcntl.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/time_types.h>
#include <linux/wait.h>

#include "sandbox-local/launcher/metadata.hpp"
#include "sandbox-local/launcher/sys.hpp"

namespace launcher {

namespace {

constexpr int kSigSetmask = 2;
constexpr int kSigKill = 9;
constexpr int kSigChld = 17;
constexpr int kSfdCloexec = 02000000;

constexpr uint64_t bit(int signal) {
  return 1ULL << (signal - 1);
}

// Every process that the kernel counts as a child of this one. What a killed child leaves behind
// comes here too, as this process is its subreaper, so repeated rounds reach the whole tree.
int kill_children(long self) {
  int killed = 0;
  Text<96> path;
  path.add("/proc/").add(self).add("/task/").add(self).add("/children");
  long fd = sys(__NR_openat, AT_FDCWD, path.c_str(), 02000000 /* O_CLOEXEC */);
  if (fd < 0) return -1;
  char buffer[4096];
  long pid = 0;
  for (;;) {
    long n = sys(__NR_read, fd, buffer, sizeof buffer);
    if (n == -EINTR) continue;
    if (n <= 0) break;
    for (long i = 0; i < n; ++i) {
      if (buffer[i] >= '0' && buffer[i] <= '9') {
        pid = pid * 10 + (buffer[i] - '0');
      } else if (pid > 0) {
        if (sys(__NR_kill, pid, kSigKill) == 0) ++killed;
        pid = 0;
      }
    }
  }
  close_fd(static_cast<int>(fd));
  return killed;
}

// Takes away all zombies; 0 while there are children, else -ECHILD.
long reap(const Waiting& waiting) {
  for (;;) {
    int status = 0;
    long pid = sys(__NR_wait4, -1, &status, WNOHANG, nullptr);
    if (pid <= 0) return pid;
    if (pid != waiting.child || waiting.shared->has_wait_status) continue;
    waiting.shared->wait_status = status;
    waiting.shared->has_wait_status = 1;
  }
}

// Bounded, as a command that forks without end can outrun it; the host kills what is left.
void sweep(const Waiting& waiting) {
  constexpr int kRounds = 4000;
  long self = sys(__NR_getpid);
  for (int round = 0; round < kRounds; ++round) {
    if (reap(waiting) == -ECHILD) return;
    if (kill_children(self) < 0) {  // a kernel without CONFIG_PROC_CHILDREN
      if (waiting.shared->has_wait_status) return;
      sys(__NR_kill, waiting.child, kSigKill);
    }
    __kernel_timespec pause{0, round < 100 ? 100'000 : 1'000'000};
    sys(__NR_nanosleep, &pause, nullptr);
  }
}

// So that the host sees the signal of the command as the signal of its own child.
[[noreturn]] void end_like(int wait_status) {
  int signal = wait_status & 0x7f;
  if (signal != 0) {
    rlimit64 none{0, 0};
    sys(__NR_prlimit64, 0, 4 /* RLIMIT_CORE */, &none, nullptr);
    set_signal_mask(~bit(signal));
    sys(__NR_kill, sys(__NR_getpid), signal);
    exit_now(128 + signal);
  }
  exit_now((wait_status >> 8) & 0xff);
}

}  // namespace

long clock_ms() {
  __kernel_timespec now{};
  sys(__NR_clock_gettime, 1 /* CLOCK_MONOTONIC */, &now);
  return static_cast<long>(now.tv_sec) * 1000 + static_cast<long>(now.tv_nsec) / 1'000'000;
}

uint64_t block_signals() {
  uint64_t before = 0;
  uint64_t blocked = ~0ULL;
  sys(__NR_rt_sigprocmask, kSigSetmask, &blocked, &before, sizeof before);
  return before;
}

void set_signal_mask(uint64_t mask) {
  sys(__NR_rt_sigprocmask, kSigSetmask, &mask, nullptr, sizeof mask);
}

void supervise(const Waiting& waiting) {
  Shared* shared = waiting.shared;
  // Its output stays open here: its end comes to the host with the report, in one piece, and does
  // not wake it while the kernel takes the command apart.
  close_fd(0);

  uint64_t watched = bit(kSigChld);
  long signals = sys(__NR_signalfd4, -1, &watched, sizeof watched, kSfdCloexec);
  if (signals < 0) {  // no descriptor left: wait for the command and do no more
    int status = 0;
    while (sys(__NR_wait4, waiting.child, &status, 0, nullptr) == -EINTR) {
    }
    end_like(status);
  }
  enum { kSignals, kStatus, kListener };
  pollfd polled[3] = {{static_cast<int>(signals), POLLIN, 0},
                      {status_descriptor(), 0, 0},  // an error there is its closed read end
                      {shared->listener, POLLIN, 0}};
  for (long deadline = -1;;) {
    long left = deadline < 0 ? 0 : deadline - clock_ms();
    if (left < 0) break;
    __kernel_timespec timeout{0, left * 1'000'000};
    long ready = sys(__NR_ppoll, polled, 3, deadline < 0 ? nullptr : &timeout, nullptr, 0);
    if (ready < 0 && ready != -EINTR && ready != -ENOMEM) break;
    if (polled[kStatus].revents & (POLLERR | POLLNVAL)) break;
    if (polled[kListener].revents & POLLIN) {
      serve_metadata(shared->listener);
    } else if (polled[kListener].revents & (POLLHUP | POLLERR | POLLNVAL)) {
      polled[kListener].fd = -1;  // the last process under the filter is gone
    }
    if (polled[kSignals].revents & POLLIN) {
      char drained[128];
      sys(__NR_read, signals, drained, sizeof drained);
      if (reap(waiting) == -ECHILD) break;
      if (shared->has_wait_status && deadline < 0) deadline = clock_ms() + kLingerMs;
    }
  }
  sweep(waiting);
  if (!shared->has_wait_status) exit_now(128 + kSigKill);
  if (!shared->reported && !shared->end_reported) report_end(shared->wait_status);
  end_like(shared->wait_status);
}

}  // namespace launcher
