// SPDX-License-Identifier: MIT
#include "sandbox-local/temporary.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "framework/error.hpp"
#include "sandbox/roots.hpp"

namespace stockade {

namespace {

constexpr std::string_view kPrefix = "stockade-tmp-";

struct Tree {
  std::string path;
  std::string identity;
};

// A directory that its owner may not enter is given back to it, so that it can be emptied. rm
// follows no link, but chmod does, and a command whose workspace holds the parent could put one in
// the place of what is being changed. So chmod is confined to the tree, as a command is to its
// workspace; where the kernel has no Landlock, such a directory stays.
constexpr const char* kRemove =
    "(launcher=$1; shift; while [ $# -gt 0 ]; do"
    " rm -rf -- \"$1\" || {"
    " \"$launcher\" --ro / --rw \"$1\" --identity \"$2\" -- chmod -R u+rwX -- \"$1\";"
    " rm -rf -- \"$1\"; }; shift 2; done) >/dev/null 2>&1 &";

// By a process of its own, since a command may have left a million files; nobody waits for it.
void remove_trees(const std::string& launcher, const std::vector<Tree>& trees) {
  if (trees.empty()) return;
  std::vector<std::string> words{"sh", "-c", kRemove, "sh", launcher};
  for (const auto& tree : trees) words.insert(words.end(), {tree.path, tree.identity});
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int fd = 0; fd < 3; ++fd)
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  char path[] = "PATH=/usr/bin:/bin";
  char* environment[] = {path, nullptr};
  pid_t pid = -1;
  if (posix_spawn(&pid, "/bin/sh", &actions, nullptr, argv.data(), environment) == 0)
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  posix_spawn_file_actions_destroy(&actions);
}

// Areas of hosts that died before they could take them away: of this user, and locked by nobody.
std::vector<Tree> abandoned_areas(const std::string& parent) {
  std::vector<Tree> found;
  DIR* directory = opendir(parent.c_str());
  if (!directory) return found;
  while (const dirent* entry = readdir(directory)) {
    std::string_view name = entry->d_name;
    if (!name.starts_with(kPrefix)) continue;
    Fd area(
        openat(dirfd(directory), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!area || fstat(area.get(), &info) != 0 || info.st_uid != geteuid()) continue;
    if (time(nullptr) - info.st_ctime < 60) continue;  // it may be about to be locked
    if (flock(area.get(), LOCK_EX | LOCK_NB) == 0)
      found.push_back({parent + "/" + entry->d_name, file_identity(area.get())});
  }
  closedir(directory);
  return found;
}

}  // namespace

TemporaryArea::TemporaryArea(std::string launcher, std::string parent)
    : launcher_(std::move(launcher)), parent_(std::move(parent)) {}

TemporaryArea::~TemporaryArea() {
  if (base_.empty()) return;
  bool empty = true;
  for (const auto& [key, name] : directories_)
    if (unlinkat(area_.get(), name.c_str(), AT_REMOVEDIR) != 0) empty = false;
  if (!empty || rmdir(base_.c_str()) != 0)
    remove_trees(launcher_, {{base_, file_identity(area_.get())}});
}

void TemporaryArea::open() {
  const std::string parent = canonicalize(parent_);
  remove_trees(launcher_, abandoned_areas(parent));
  std::string pattern = parent + "/" + std::string(kPrefix) + "XXXXXX";
  Fd area;
  if (mkdtemp(pattern.data()))
    area = Fd(::open(pattern.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!area)
    throw Error("TEMPORARY_AREA",
                "cannot make a directory in \"" + parent_ +
                    "\" for the temporary files of commands: " + describe_errno(errno) +
                    "; make room there; nothing was run",
                parent_);
  flock(area.get(), LOCK_EX | LOCK_NB);
  area_ = std::move(area);
  base_ = std::move(pattern);
}

std::string TemporaryArea::directory_for(const SandboxPolicy& policy) {
  if (base_.empty()) open();
  std::string key = policy.session_id.value_or("") + '\0' + policy.workspace_root;
  auto found = directories_.find(key);
  if (found != directories_.end()) return base_ + "/" + found->second;
  const std::string name = std::to_string(directories_.size() + 1);
  // As /tmp is: a command may change to another user. Only who passes `base_`, as root or the owner
  // does, gets here from outside.
  Fd directory;
  if (mkdirat(area_.get(), name.c_str(), 0700) == 0)
    directory =
        Fd(openat(area_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory || fchmod(directory.get(), 01777) != 0)
    throw Error("TEMPORARY_AREA",
                "cannot make \"" + base_ + "/" + name + "\" for the temporary files of commands: " +
                    describe_errno(errno) + "; nothing was run",
                base_ + "/" + name);
  directories_.emplace(std::move(key), name);
  return base_ + "/" + name;
}

}  // namespace stockade
