// SPDX-License-Identifier: MIT
// stockade-supervise: stands between the host and a command that no runner of ours confines, and
// owns its whole process tree.
//
//   stockade-supervise LINGER_MS PROGRAM ARGV0 [ARG]...
//
// As the subreaper it adopts every descendant whose parent dies, so `setsid` and double forks lead
// nowhere. Descriptor 3 is a pipe that the host reads: reports go there (sandbox/status.hpp), and
// when its other end closes, because the host wants the tree gone or because the host is dead, the
// whole tree is killed. TERM is passed on to the command's process group. The command leads a
// session of its own, so a signal that it sends to its group does not come here. Ends as the
// command ended, by the same exit code or the same signal.
//
// Static and without the C++ library, since its start is part of every call.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

namespace {

constexpr int kLeash = 3;
constexpr int kNotStarted = 127;
constexpr long kPidfdSendSignal = 424;
constexpr long kPidfdOpen = 434;
constexpr long kCloseRange = 436;
constexpr long long kSweepLimit = 5000;  // ms; a process that no signal ends must not keep us

long long now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

void report(const char* text) {
  while (write(kLeash, text, strlen(text)) < 0 && errno == EINTR) {
  }
}

[[noreturn]] void not_started(int error) {
  char line[128];
  snprintf(line, sizeof line, "{\"status\":\"exec-failed\",\"errno\":%d}\n", error);
  report(line);
  _exit(kNotStarted);
}

// -1 where there is no such process.
pid_t parent_of(pid_t pid) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  char text[512];
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return -1;
  text[size] = '\0';
  const char* after_name = strrchr(text, ')');  // a name may hold anything, `) R 1` included
  int parent = -1;
  char state = 0;
  if (!after_name || sscanf(after_name + 1, " %c %d", &state, &parent) != 2) return -1;
  return parent;
}

// A growing list of pids with their parents; small, since it is only made when something is left.
struct Table {
  struct Entry {
    pid_t pid;
    pid_t parent;
    bool ours;
  };
  Entry* entries = nullptr;
  size_t size = 0;
  size_t room = 0;

  bool add(pid_t pid, pid_t parent) {
    if (size == room) {
      size_t more = room ? room * 2 : 1024;
      auto* bigger = static_cast<Entry*>(realloc(entries, more * sizeof(Entry)));
      if (!bigger) return false;
      entries = bigger;
      room = more;
    }
    entries[size++] = {pid, parent, false};
    return true;
  }
  void sort() {
    qsort(entries, size, sizeof(Entry), [](const void* a, const void* b) {
      return static_cast<const Entry*>(a)->pid - static_cast<const Entry*>(b)->pid;
    });
  }
  // Once sorted.
  bool has(pid_t pid) const {
    size_t low = 0;
    for (size_t high = size; low < high;) {
      const size_t middle = low + (high - low) / 2;
      if (entries[middle].pid < pid)
        low = middle + 1;
      else
        high = middle;
    }
    return low < size && entries[low].pid == pid && entries[low].ours;
  }
};

// Every process below this one. Orphans are adopted here, so the chain of parents has no gap.
void find_descendants(Table& table) {
  table.size = 0;
  DIR* proc = opendir("/proc");
  if (!proc) return;
  while (const dirent* entry = readdir(proc)) {
    char* end = nullptr;
    long pid = strtol(entry->d_name, &end, 10);
    if (*end != '\0' || pid <= 0) continue;
    pid_t parent = parent_of(static_cast<pid_t>(pid));
    if (parent >= 0 && !table.add(static_cast<pid_t>(pid), parent)) break;
  }
  closedir(proc);
  table.sort();
  const pid_t self = getpid();
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < table.size; ++i) {
      auto& entry = table.entries[i];
      if (entry.ours || entry.pid == self) continue;
      if (entry.parent != self && !table.has(entry.parent)) continue;
      entry.ours = true;
      more = true;
    }
  }
}

// By descriptor, and only when the process that it stands for is still the one that was found: the
// id may have gone to a stranger in between.
void signal_exactly(const Table& table, const Table::Entry& entry, int signal) {
  int fd = static_cast<int>(syscall(kPidfdOpen, entry.pid, 0));
  if (fd < 0) return;
  pid_t parent = parent_of(entry.pid);
  if (parent == getpid() || table.has(parent)) syscall(kPidfdSendSignal, fd, signal, nullptr, 0);
  close(fd);
}

pid_t command = -1;  // until it is reaped
int ending = -1;     // its wait status

// True when nothing is left below.
bool reap() {
  for (;;) {
    int status = 0;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == 0) return false;
    if (pid < 0) {
      if (errno == EINTR) continue;
      return true;
    }
    if (pid != command) continue;
    command = -1;
    ending = status;
  }
}

// Stopped first, so that what is forking cannot outrun the killing; then killed.
void sweep() {
  const long long until = now() + kSweepLimit;
  Table table;
  if (command > 0) kill(-command, SIGKILL);
  while (!reap() && now() < until) {
    size_t seen = 0;
    for (int round = 0; round < 100; ++round) {
      find_descendants(table);
      size_t count = 0;
      for (size_t i = 0; i < table.size; ++i) {
        if (!table.entries[i].ours) continue;
        ++count;
        signal_exactly(table, table.entries[i], SIGSTOP);
      }
      if (round > 0 && count <= seen) break;
      seen = count;
    }
    for (size_t i = 0; i < table.size; ++i)
      if (table.entries[i].ours) signal_exactly(table, table.entries[i], SIGKILL);
    const timespec pause{0, 2000000};
    nanosleep(&pause, nullptr);
  }
}

[[noreturn]] void end_as_command() {
  if (ending < 0) _exit(kNotStarted);
  char line[64];
  if (WIFEXITED(ending)) {
    snprintf(line, sizeof line, "{\"status\":\"exited\",\"exitCode\":%d}\n", WEXITSTATUS(ending));
    report(line);
    _exit(WEXITSTATUS(ending));
  }
  const int signal_number = WTERMSIG(ending);
  snprintf(line, sizeof line, "{\"status\":\"signaled\",\"signal\":%d}\n", signal_number);
  report(line);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  signal(signal_number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal_number);
  kill(getpid(), signal_number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  _exit(128 + signal_number);
}

}  // namespace

int main(int argc, char** argv) {
  fcntl(kLeash, F_SETFD, FD_CLOEXEC);
  syscall(kCloseRange, kLeash + 1, ~0U, 0);
  if (argc < 4) not_started(EINVAL);
  const long linger = strtol(argv[1], nullptr, 10);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);

  sigset_t handled;
  sigemptyset(&handled);
  for (int signal_number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT})
    sigaddset(&handled, signal_number);
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  const int signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) not_started(errno);

  // vfork: the error of exec comes back in this variable.
  static volatile int exec_error = 0;
  const pid_t self = getpid();
  command = vfork();
  if (command < 0) not_started(errno);
  if (command == 0) {
    // Killing the supervisor must not set the command free.
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != self) _exit(kNotStarted);
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    // Before and not after: the command may kill this program at once.
    report("{\"status\":\"ready\"}\n");
    execv(argv[2], argv + 3);
    exec_error = errno;
    _exit(kNotStarted);
  }
  if (exec_error) not_started(exec_error);

  signal(SIGPIPE, SIG_IGN);  // the leash may be closed when the end is reported
  // The command's streams end with the command and not with this process.
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd)
    if (null < 0 || dup2(null, fd) < 0) close(fd);

  long long deadline = -1;
  for (;;) {
    const bool alone = reap();
    if (ending >= 0 && alone) break;
    if (ending >= 0 && deadline < 0) deadline = now() + linger;
    const long long left = deadline < 0 ? -1 : deadline - now();
    if (deadline >= 0 && left <= 0) {
      sweep();
      break;
    }
    pollfd watched[2] = {{signals, POLLIN, 0}, {kLeash, 0, 0}};
    if (poll(watched, 2, static_cast<int>(left)) < 0 && errno != EINTR) break;
    if (watched[1].revents & (POLLERR | POLLHUP | POLLNVAL)) {
      sweep();
      break;
    }
    signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
      if (info.ssi_signo != SIGCHLD && command > 0)
        kill(-command, static_cast<int>(info.ssi_signo));
  }
  end_as_command();
}
