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

// By a process of its own, since a command may have left a million files; nobody waits for it.
void remove_trees(const std::vector<std::string>& trees) {
  if (trees.empty()) return;
  // A directory that its owner may not enter is made so that it can be emptied.
  std::vector<std::string> words{
      "sh", "-c",
      "(rm -rf -- \"$@\" || { chmod -R u+rwX -- \"$@\"; rm -rf -- \"$@\"; }) >/dev/null 2>&1 &",
      "sh"};
  words.insert(words.end(), trees.begin(), trees.end());
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
std::vector<std::string> abandoned_areas(const std::string& parent) {
  std::vector<std::string> found;
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
    if (flock(area.get(), LOCK_EX | LOCK_NB) == 0) found.push_back(parent + "/" + entry->d_name);
  }
  closedir(directory);
  return found;
}

}  // namespace

TemporaryArea::TemporaryArea(std::string parent) : parent_(std::move(parent)) {}

TemporaryArea::~TemporaryArea() {
  if (base_.empty()) return;
  bool empty = true;
  for (const auto& [key, directory] : directories_)
    if (rmdir(directory.c_str()) != 0) empty = false;
  if (!empty || rmdir(base_.c_str()) != 0) remove_trees({base_});
}

void TemporaryArea::open() {
  remove_trees(abandoned_areas(parent_));
  std::string pattern = canonicalize(parent_) + "/" + std::string(kPrefix) + "XXXXXX";
  if (!mkdtemp(pattern.data()))
    throw Error("TEMPORARY_AREA",
                "cannot make a directory in \"" + parent_ +
                    "\" for the temporary files of commands: " + describe_errno(errno) +
                    "; make room there; nothing was run",
                parent_);
  lock_ = Fd(::open(pattern.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock_) flock(lock_.get(), LOCK_EX | LOCK_NB);
  base_ = std::move(pattern);
}

std::string TemporaryArea::directory_for(const SandboxPolicy& policy) {
  if (base_.empty()) open();
  std::string key = policy.session_id.value_or("") + '\0' + policy.workspace_root;
  auto found = directories_.find(key);
  if (found != directories_.end()) return found->second;
  std::string path = base_ + "/" + std::to_string(directories_.size() + 1);
  // As /tmp is: a command may change to another user. Only who passes `base_`, as root or the owner
  // does, gets here from outside.
  if (mkdir(path.c_str(), 0700) != 0 || chmod(path.c_str(), 01777) != 0)
    throw Error("TEMPORARY_AREA",
                "cannot make \"" + path + "\" for the temporary files of commands: " +
                    describe_errno(errno) + "; nothing was run",
                path);
  directories_.emplace(std::move(key), path);
  return path;
}

}  // namespace stockade
