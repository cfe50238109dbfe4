// SPDX-License-Identifier: MIT
#include "sandbox-local/launcher/confine.hpp"

#include <errno.h>
#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/stat.h>

#include "sandbox-local/launcher/report.hpp"
#include "sandbox-local/launcher/sys.hpp"

namespace launcher {

namespace {

struct RulesetAttributes {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;
  uint64_t scoped;
};

struct PathBeneath {
  uint64_t allowed_access;
  int32_t parent_fd;
} __attribute__((packed));

constexpr uint64_t kOnFiles = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDev;
constexpr uint64_t kScopeAbstractSocketAndSignal = 3;

constexpr uint64_t kKeptAsRoot = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FOWNER |
                                 1ULL << CAP_FSETID | 1ULL << CAP_KILL | 1ULL << CAP_SETGID |
                                 1ULL << CAP_SETUID;

uint64_t handled_at(int abi) {
  if (abi >= 5) return 0xffffULL;
  if (abi >= 3) return 0x7fffULL;
  return abi == 2 ? 0x3fffULL : 0x1fffULL;
}

struct Capabilities {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
};

Capabilities read_capabilities() {
  Capabilities capabilities;
  long error = sys(__NR_capget, &capabilities.header, capabilities.data);
  if (error) refuse("cannot read capabilities", nullptr, error);
  return capabilities;
}

void close_between(unsigned first, unsigned last) {
  if (first > last || sys(kCloseRange, first, last, 0) == 0) return;
  // Before Linux 5.9.
  for (unsigned fd = first; fd <= last && fd < 65536; ++fd) close_fd(static_cast<int>(fd));
}

}  // namespace

int landlock_abi(long* error) {
  long abi = sys(kLandlockCreateRuleset, nullptr, 0, 1);
  if (error) *error = abi < 0 ? abi : 0;
  return abi < 0 ? 0 : static_cast<int>(abi);
}

long open_rule(const Rule& rule) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = rule.follow == Follow::no_links ? RESOLVE_NO_SYMLINKS : 0;
  long fd = sys(kOpenat2, AT_FDCWD, rule.path, &how, sizeof how);
  // Before Linux 5.6, or under a filter that does not know it.
  if (fd == -ENOSYS && rule.follow == Follow::links)
    fd = sys(__NR_openat, AT_FDCWD, rule.path, O_PATH | O_CLOEXEC);
  if (fd < 0 || !rule.identity) return fd;
  struct statx info {};
  long error = sys(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &info);
  if (error) refuse("cannot identify", rule.path, error);
  Text<96> identity;
  identity.add(static_cast<long>(info.stx_dev_major)).add(":");
  identity.add(static_cast<long>(info.stx_dev_minor)).add(":");
  identity.add(static_cast<long>(info.stx_ino));
  if (!same(identity.c_str(), rule.identity))
    refuse("another directory took the place of the one that was checked,", rule.path);
  return fd;
}

int make_ruleset(int abi, const Rule* rules, int count) {
  if (abi <= 0) return -1;
  RulesetAttributes attributes{handled_at(abi), 0, abi >= 6 ? kScopeAbstractSocketAndSignal : 0};
  size_t size = abi >= 6 ? sizeof attributes : abi >= 4 ? 16 : 8;
  long ruleset = sys(kLandlockCreateRuleset, &attributes, size, 0);
  if (ruleset < 0) refuse("cannot create a Landlock ruleset", nullptr, ruleset);
  for (const Rule* rule = rules; rule < rules + count; ++rule) {
    long fd = open_rule(*rule);
    if (fd < 0 && rule->optional) continue;
    if (fd < 0) refuse("cannot open rule path", rule->path, fd);
    uint64_t access = rule->access & attributes.handled_access_fs;
    PathBeneath beneath{access, static_cast<int32_t>(fd)};
    long error = sys(kLandlockAddRule, ruleset, 1, &beneath, 0);
    if (error == -EINVAL && (access & ~kOnFiles)) {  // it is no directory
      beneath.allowed_access = access & kOnFiles;
      error = sys(kLandlockAddRule, ruleset, 1, &beneath, 0);
    }
    if (error) refuse("cannot add rule for", rule->path, error);
    close_fd(static_cast<int>(fd));
  }
  return static_cast<int>(ruleset);
}

void close_inherited(int keep) {
  if (keep == 0) return close_between(3, ~0U);
  close_between(3, static_cast<unsigned>(keep) - 1);
  close_between(static_cast<unsigned>(keep) + 1, ~0U);
}

bool has_mount_capability() {
  return (read_capabilities().data[0].effective >> CAP_SYS_ADMIN & 1) != 0;
}

// The bounding set is left as it is: with no_new_privs exec adds nothing to what is permitted
// (cap_bprm_creds_from_file), and taking 34 of its bits away costs a system call for each.
void drop_capabilities(bool all) {
  if (long error = sys(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    refuse("cannot set no_new_privs", nullptr, error);
  Capabilities capabilities = read_capabilities();
  auto& data = capabilities.data;
  if ((data[0].permitted | data[1].permitted) == 0) return;
  uint64_t kept = all ? 0 : kKeptAsRoot;
  sys(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (int i = 0; i < 2; ++i) {
    auto half = static_cast<uint32_t>(kept >> (32 * i));
    data[i].permitted &= half;
    data[i].effective &= half;
    data[i].inheritable = 0;
  }
  long error = sys(__NR_capset, &capabilities.header, data);
  if (error) refuse("cannot drop capabilities", nullptr, error);
}

void restrict_self(int ruleset) {
  if (ruleset < 0) return;
  if (long error = sys(kLandlockRestrictSelf, ruleset, 0))
    refuse("cannot enforce the Landlock ruleset", nullptr, error);
  close_fd(ruleset);
}

long execute(char** command, char** environment) {
  const char* program = command[0];
  for (const char* at = program; *at; ++at)
    if (*at == '/') return sys(__NR_execve, program, command, environment);
  if (!*program) return -ENOENT;
  const char* path = "/usr/local/bin:/usr/bin:/bin";
  for (char** entry = environment; *entry; ++entry)
    if ((*entry)[0] == 'P' && (*entry)[1] == 'A' && (*entry)[2] == 'T' && (*entry)[3] == 'H' &&
        (*entry)[4] == '=')
      path = *entry + 5;
  long error = -ENOENT;
  for (;;) {
    Text<4096> candidate;
    const char* end = path;
    while (*end && *end != ':') ++end;
    for (; path < end; ++path) {
      char letter[2] = {*path, '\0'};
      candidate.add(letter);
    }
    // An empty element means the working directory, where a workspace could plant a program.
    if (candidate.size() > 0) {
      candidate.add("/").add(program);
      long failure = sys(__NR_execve, candidate.c_str(), command, environment);
      if (failure == -EACCES || (failure != -ENOENT && failure != -ENOTDIR)) error = failure;
      if (failure != -ENOENT && failure != -ENOTDIR && failure != -EACCES) return failure;
    }
    if (!*end) return error;
    path = end + 1;
  }
}

}  // namespace launcher
