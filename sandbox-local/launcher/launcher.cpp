// SPDX-License-Identifier: MIT
// stockade-launch: the runner binary. It confines itself with Landlock and becomes the command.
//
//   stockade-launch [--ro PATH]... [--rw PATH]... [--status-fd N] [--stub] -- ARGV...
//   stockade-launch --probe
//
// Two roles: the `landlock` backend, and with --stub the last step inside bwrap, where Landlock is
// a second wall and its absence no failure. Static and without the C++ library, since its start is
// part of every call. Exit 125 and a line that begins with `landlock-run: ` when it refuses; with a
// status descriptor the refusal goes there and stderr stays the command's own.
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// Distributions' headers stop at older ABIs; these are the kernel's numbers.
constexpr long kLandlockCreateRuleset = 444;
constexpr long kLandlockAddRule = 445;
constexpr long kLandlockRestrictSelf = 446;
constexpr long kCloseRange = 436;

struct RulesetAttributes {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;
  uint64_t scoped;
};
struct PathBeneath {
  uint64_t allowed_access;
  int32_t parent_fd;
} __attribute__((packed));

constexpr uint64_t kExecute = 1ULL << 0;
constexpr uint64_t kWriteFile = 1ULL << 1;
constexpr uint64_t kReadFile = 1ULL << 2;
constexpr uint64_t kReadDir = 1ULL << 3;
constexpr uint64_t kMakeChar = 1ULL << 6;
constexpr uint64_t kMakeBlock = 1ULL << 11;
constexpr uint64_t kTruncate = 1ULL << 14;
constexpr uint64_t kIoctlDev = 1ULL << 15;
constexpr uint64_t kOnFiles = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDev;
constexpr uint64_t kReadOnly = kExecute | kReadFile | kReadDir;
// A device node made in a workspace would be a door to the disk behind it.
constexpr uint64_t kReadWrite = 0xffffULL & ~(kMakeChar | kMakeBlock);
constexpr uint64_t kScopeAbstractSocketAndSignal = 3;

constexpr int kFullAbi = 3;  // below it truncate(2) is not governed

uint64_t handled_at(int abi) {
  if (abi >= 5) return 0xffffULL;
  if (abi >= 3) return 0x7fffULL;
  return abi == 2 ? 0x3fffULL : 0x1fffULL;
}

int status_fd = -1;

void write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    data += n;
    size -= static_cast<size_t>(n);
  }
}

// A line of text into a bounded buffer.
class Line {
 public:
  Line& add(const char* text) {
    while (*text && size_ < sizeof buffer_ - 1) buffer_[size_++] = *text++;
    return *this;
  }
  // As the inside of a JSON string; bytes that are not ASCII become `?`, paths keep the rest.
  Line& add_escaped(const char* text) {
    for (; *text && size_ < sizeof buffer_ - 8; ++text) {
      unsigned char c = static_cast<unsigned char>(*text);
      if (c == '"' || c == '\\') buffer_[size_++] = '\\';
      buffer_[size_++] = c < 0x20 || c >= 0x7f ? '?' : static_cast<char>(c);
    }
    return *this;
  }
  void write_to(int fd) const { write_all(fd, buffer_, size_); }

 private:
  char buffer_[4096];
  size_t size_ = 0;
};

constexpr int kRefused = 125;

[[noreturn]] void fail(const char* status, const char* what, const char* operand, int error) {
  const char* reason = error ? strerror(error) : nullptr;
  if (status_fd >= 0) {
    Line line;
    line.add("{\"status\":\"").add(status).add("\",\"message\":\"").add_escaped(what);
    if (operand) line.add(" ").add_escaped(operand);
    if (reason) line.add(": ").add_escaped(reason);
    line.add("\"}\n").write_to(status_fd);
  } else {
    Line line;
    line.add("landlock-run: ").add(what);
    if (operand) line.add(" ").add(operand);
    if (reason) line.add(": ").add(reason);
    line.add("\n").write_to(2);
  }
  _exit(kRefused);
}

[[noreturn]] void refuse(const char* what, const char* operand = nullptr, int error = 0) {
  fail("refused", what, operand, error);
}

[[noreturn]] void usage_error(const char* what, const char* operand = nullptr) {
  Line line;
  line.add("landlock-run: usage error: ").add(what);
  if (operand) line.add(operand);
  line.add("\n").write_to(2);
  _exit(kRefused);
}

int landlock_abi() {
  long abi = syscall(kLandlockCreateRuleset, nullptr, 0, 1);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

// An inherited descriptor walks past every path rule, so this comes first.
void close_inherited() {
  auto close_between = [](unsigned first, unsigned last) {
    if (first > last) return;
    if (syscall(kCloseRange, first, last, 0) == 0) return;
    rlimit limit{};  // before Linux 5.9
    getrlimit(RLIMIT_NOFILE, &limit);
    for (unsigned fd = first; fd <= last && fd < limit.rlim_cur; ++fd) close(static_cast<int>(fd));
  };
  if (status_fd < 0) return close_between(3, ~0U);
  close_between(3, static_cast<unsigned>(status_fd) - 1);
  close_between(static_cast<unsigned>(status_fd) + 1, ~0U);
}

// As root, Landlock is no wall to a capability: mount_setattr and open_by_handle_at pass it by.
// What stays is what writing a workspace of any owner and changing to another user need;
// DAC_READ_SEARCH is not among them, as it opens files by handle.
void drop_capabilities() {
  constexpr uint64_t kKept = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FOWNER |
                             1ULL << CAP_FSETID | 1ULL << CAP_KILL | 1ULL << CAP_SETGID |
                             1ULL << CAP_SETUID;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) != 0) refuse("cannot read capabilities", nullptr, errno);
  if ((data[0].permitted | data[1].permitted) == 0) return;
  // Needs CAP_SETPCAP, which an outer sandbox may have taken; no_new_privs then keeps exec from
  // adding what capset below takes away.
  for (int cap = 0; cap < 64; ++cap)
    if (!(kKept >> cap & 1) && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
      prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (int i = 0; i < 2; ++i) {
    auto kept = static_cast<uint32_t>(kKept >> (32 * i));
    data[i].permitted &= kept;
    data[i].effective &= kept;
    data[i].inheritable = 0;
  }
  if (syscall(SYS_capset, &header, data) != 0) refuse("cannot drop capabilities", nullptr, errno);
}

void add_rule(int ruleset, const char* path, uint64_t access, uint64_t handled) {
  int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) refuse("cannot open rule path", path, errno);
  struct stat info {};
  if (fstat(fd, &info) != 0) refuse("cannot open rule path", path, errno);
  access &= handled;
  if (!S_ISDIR(info.st_mode)) access &= kOnFiles;
  PathBeneath rule{access, fd};
  if (syscall(kLandlockAddRule, ruleset, 1, &rule, 0) != 0)
    refuse("cannot add rule for", path, errno);
  close(fd);
}

int probe() {
  int abi = landlock_abi();
  if (abi <= 0) refuse("Landlock is not enabled in this kernel", nullptr, errno);
  puts(abi >= kFullAbi ? "landlock: fully enforced" : "landlock: partially enforced (older ABI)");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  struct Rule {
    const char* path;
    uint64_t access;
  };
  auto* rules = static_cast<Rule*>(calloc(static_cast<size_t>(argc) + 1, sizeof(Rule)));
  if (!rules) usage_error("not enough memory");
  int rule_count = 0;
  bool stub = false;
  char** command = nullptr;

  if (argc >= 2 && strcmp(argv[1], "--probe") == 0) {
    if (argc > 2) usage_error("--probe takes no other arguments");
    return probe();
  }
  for (int i = 1; i < argc && !command; ++i) {
    auto value = [&](const char* missing) {
      if (i + 1 >= argc || strcmp(argv[i + 1], "--") == 0) usage_error(missing);
      return argv[++i];
    };
    if (strcmp(argv[i], "--") == 0) {
      command = argv + i + 1;
    } else if (strcmp(argv[i], "--ro") == 0) {
      rules[rule_count++] = {value("--ro requires a path"), kReadOnly};
    } else if (strcmp(argv[i], "--rw") == 0) {
      rules[rule_count++] = {value("--rw requires a path"), kReadWrite};
    } else if (strcmp(argv[i], "--stub") == 0) {
      stub = true;
    } else if (strcmp(argv[i], "--status-fd") == 0) {
      const char* text = value("--status-fd requires a number");
      char* end = nullptr;
      long fd = strtol(text, &end, 10);
      if (*text == '\0' || *end != '\0' || fd < 3 || fd > 1 << 20)
        usage_error("--status-fd requires a descriptor above 2, got ", text);
      status_fd = static_cast<int>(fd);
    } else if (strcmp(argv[i], "--probe") == 0) {
      usage_error("--probe takes no other arguments");
    } else {
      usage_error("unknown argument: ", argv[i]);
    }
  }
  if (!command || !*command) usage_error("missing `-- <argv>...` command");

  if (status_fd >= 0 && fcntl(status_fd, F_SETFD, FD_CLOEXEC) != 0) {
    status_fd = -1;
    refuse("the status descriptor is not open", nullptr, errno);
  }
  close_inherited();

  // bwrap and its init were started with SIGTERM blocked, so that they outlive the command's traps.
  if (stub) {
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &term, nullptr);
  }

  // The host's death ends this process, and so does bwrap's. What the command starts is only
  // covered by a PID namespace.
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);

  int abi = landlock_abi();
  if (abi <= 0 && !stub) refuse("Landlock is not enabled in this kernel", nullptr, errno);
  int ruleset = -1;
  if (abi > 0) {
    RulesetAttributes attributes{handled_at(abi), 0, abi >= 6 ? kScopeAbstractSocketAndSignal : 0};
    size_t size = abi >= 6 ? sizeof attributes : abi >= 4 ? 16 : 8;
    ruleset = static_cast<int>(syscall(kLandlockCreateRuleset, &attributes, size, 0));
    if (ruleset < 0) refuse("cannot create a Landlock ruleset", nullptr, errno);
    for (int i = 0; i < rule_count; ++i)
      add_rule(ruleset, rules[i].path, rules[i].access, attributes.handled_access_fs);
  }
  drop_capabilities();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    refuse("cannot set no_new_privs", nullptr, errno);
  if (ruleset >= 0) {
    if (syscall(kLandlockRestrictSelf, ruleset, 0) != 0)
      refuse("cannot enforce the Landlock ruleset", nullptr, errno);
    close(ruleset);
  }

  if (status_fd >= 0) {
    char ready[64];
    int size = snprintf(ready, sizeof ready, "{\"status\":\"ready\",\"landlockAbi\":%d}\n", abi);
    write_all(status_fd, ready, static_cast<size_t>(size));
  } else if (abi < kFullAbi && !stub) {
    Line().add("landlock-run: partial enforcement (older Landlock ABI)\n").write_to(2);
  }
  execvp(command[0], command);
  fail("exec-failed", "cannot execute", command[0], errno);
}
