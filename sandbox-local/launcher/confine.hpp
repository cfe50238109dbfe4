// SPDX-License-Identifier: MIT
// The walls that a process puts around itself and cannot take down again.
#pragma once

#include <stdint.h>

namespace launcher {

enum class Follow {
  links,     // as any path
  no_links,  // a path that is canonical; a link in it was planted after it was checked
};

struct Rule {
  const char* path = nullptr;
  uint64_t access = 0;
  Follow follow = Follow::links;
  bool optional = false;  // a path that does not exist is passed over
  // `MAJOR:MINOR:INODE` that the path had when it was checked; null: not checked.
  const char* identity = nullptr;
};

inline constexpr uint64_t kExecute = 1ULL << 0;
inline constexpr uint64_t kWriteFile = 1ULL << 1;
inline constexpr uint64_t kReadFile = 1ULL << 2;
inline constexpr uint64_t kReadDir = 1ULL << 3;
inline constexpr uint64_t kMakeChar = 1ULL << 6;
inline constexpr uint64_t kMakeBlock = 1ULL << 11;
inline constexpr uint64_t kTruncate = 1ULL << 14;
inline constexpr uint64_t kIoctlDev = 1ULL << 15;
inline constexpr uint64_t kReadOnly = kExecute | kReadFile | kReadDir;
// A device node made in a workspace would be a door to the disk behind it.
inline constexpr uint64_t kReadWrite = 0xffffULL & ~(kMakeChar | kMakeBlock);

inline constexpr int kMaxRules = 512;

inline constexpr int kFullAbi = 3;  // below it truncate(2) is not governed

// 0 when this kernel has no Landlock; the reason in `error` then.
int landlock_abi(long* error = nullptr);

// O_PATH descriptor of a rule's path, or a negated errno. Refuses when it is not what was checked.
long open_rule(const Rule& rule);

// A ruleset of these rules, -1 without Landlock. Refuses when a rule's path cannot be opened.
int make_ruleset(int abi, const Rule* rules, int count);

// Of an inherited descriptor no path rule knows. Above the standard ones but `keep` (0: none).
void close_inherited(int keep);

// As root neither Landlock nor a read-only mount is a wall to a capability: mount_setattr and
// open_by_handle_at pass them by. What stays is what writing a workspace of any owner and changing
// to another user need; DAC_READ_SEARCH is not among them, as it opens files by handle.
// `all`: keep none. For good: no_new_privs is set first, so that no exec can add one.
void drop_capabilities(bool all);
bool has_mount_capability();

// The ruleset (-1: none), which is closed. After drop_capabilities(): the kernel wants
// no_new_privs.
void restrict_self(int ruleset);

// Runs `command` through PATH of `environment`; returns the negated errno.
long execute(char** command, char** environment);

}  // namespace launcher
