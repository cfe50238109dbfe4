// SPDX-License-Identifier: MIT
// faulty_host SYSCALL ERRNO COUNT MODE COMMAND: one call through the executor in a host whose
// kernel refuses SYSCALL with ERRNO, from the moment at which the call begins; COUNT is how many
// calls are made. MODE is `danger` or `confined`, by a runner that confines nothing.
//
// An ERRNO below 0 is for how many milliseconds SYSCALL hangs before it is made the first time.
//
// A filter of seccomp is what refuses, so that the fault is at the very border to the kernel and
// the code under test has no seam for it. It is inherited: choose what the command does not need.
//
// Prints a line of JSON for each call, and then one with what is left behind.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "bash-sandbox/executor.hpp"
#include "framework/error.hpp"
#include "framework/json.hpp"
#include "tests/support/await.hpp"
#include "tests/support/children.hpp"
#include "tests/support/fake_sandbox.hpp"

namespace {

using namespace stockade;

const std::map<std::string, int> kCalls{
    {"none", -1},
    {"clone", SYS_clone},
    {"execve", SYS_execve},
    {"epoll_ctl", SYS_epoll_ctl},
    {"mkdir", SYS_mkdir},
    {"flock", SYS_flock},
    {"pwrite64", SYS_pwrite64},
    {"kill", SYS_kill},
    {"waitid", SYS_waitid},
    {"timerfd_create", SYS_timerfd_create},
    {"timerfd_settime", SYS_timerfd_settime},
};

void answer_late(int listener, int milliseconds) {
  for (;; milliseconds = 0) {
    seccomp_notif asked{};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    seccomp_notif_resp answer{};
    answer.id = asked.id;
    answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

// x86-64 and AArch64 number them differently, and the names above are of this build's.
void refuse(int number, int error) {
  const unsigned verdict =
      error < 0 ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | static_cast<unsigned>(error);
  // Of clone only that of a command, which asks for a pidfd; the leak checker's does not.
  const __u8 unless_asked = number == SYS_clone ? 1 : 0;
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_PIDFD, 0, unless_asked),
      BPF_STMT(BPF_RET | BPF_K, verdict),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{sizeof program / sizeof *program, program};
  // In every thread: libuv's write the spill files.
  unsigned long flags = SECCOMP_FILTER_FLAG_TSYNC;
  if (error < 0) flags |= SECCOMP_FILTER_FLAG_TSYNC_ESRCH | SECCOMP_FILTER_FLAG_NEW_LISTENER;
  long listener = -1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
    listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
  if (listener < 0) {
    std::perror("seccomp");
    std::exit(1);
  }
  if (error < 0) std::thread(answer_late, static_cast<int>(listener), -error).detach();
}

std::size_t descriptors() {
  return static_cast<std::size_t>(std::distance(
      std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator{}));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 || kCalls.count(argv[1]) == 0) return 2;
  const int number = kCalls.at(argv[1]);
  const int error = std::atoi(argv[2]);
  const int count = std::atoi(argv[3]);

  Loop loop;
  auto sandbox = std::make_shared<test::FakeSandbox>();
  sandbox->answer.argv = {"/usr/bin/env"};
  BashSandboxConfig config;
  config.cwd = "/";
  config.max_output_bytes = 1000;
  config.grace_ms = 300;
  {
    BashExecutor shell(loop, config, std::make_shared<SandboxPolicyService>(SandboxPolicyConfig{}),
                       [&] { return sandbox; });
    BashRequest request{.command = argv[5]};
    request.policy =
        SandboxExecutionPolicy{std::strcmp(argv[4], "danger") == 0 ? SandboxMode::danger_full_access
                                                                   : SandboxMode::read_only,
                               "/", std::nullopt};
    request.timeout_ms = error < 0 ? 500 : 3000;
    // What is opened at the first use is no leak.
    BashRequest first{.command = "true"};
    first.policy = request.policy;
    test::await_task(loop, shell.run(shell.resolve(first), {}, nullptr));
    loop.drain();
    if (number >= 0) refuse(number, error);
    const std::size_t before = descriptors();
    for (int i = 0; i < count; ++i) {
      nlohmann::ordered_json line;
      try {
        BashResult result = test::await_task(loop, shell.run(shell.resolve(request), {}, nullptr));
        line = to_json(result);
      } catch (const std::exception& thrown) {
        line = {{"thrown", thrown.what()}};
      }
      std::puts(json_text(line).c_str());
    }
    loop.drain();
    nlohmann::ordered_json left{
        {"descriptors", static_cast<long>(descriptors()) - static_cast<long>(before)},
        {"children", test::children()}};
    std::puts(json_text(left).c_str());
  }
  return 0;
}
