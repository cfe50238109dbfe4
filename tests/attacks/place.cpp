// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "tests/attacks/attack.hpp"

namespace stockade::test {

namespace {

void check(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what + ": " + strerror(errno));
}

void describe(const std::string& path, std::string& out) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    out += path + " is gone\n";
    return;
  }
  for (long value :
       {static_cast<long>(info.st_mode), static_cast<long>(info.st_uid),
        static_cast<long>(info.st_gid), static_cast<long>(info.st_size),
        static_cast<long>(info.st_ino), static_cast<long>(info.st_nlink), info.st_mtim.tv_sec,
        info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec})
    out += std::to_string(value) + " ";
  out += path + "\n";
  if (!S_ISDIR(info.st_mode)) return;
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored))
    names.push_back(entry.path());
  std::sort(names.begin(), names.end());
  for (const auto& name : names) describe(name, out);
}

}  // namespace

std::string snapshot(const std::string& path) {
  std::string text;
  describe(path, text);
  return text;
}

Victim::Victim(uid_t uid, const std::string& directory) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(page != MAP_FAILED, "mmap");
  word_ = static_cast<long*>(page);
  *word_ = 0;
  int ready[2];
  check(pipe2(ready, O_CLOEXEC) == 0, "pipe");
  pid_ = fork();
  check(pid_ >= 0, "fork");
  if (pid_ == 0) {
    if (geteuid() == 0 && (setgid(uid) != 0 || setuid(uid) != 0)) _exit(1);
    prctl(PR_SET_DUMPABLE, 1);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open((directory + "/held").c_str(), O_RDWR);
    int ends[2];
    if (fd < 0 || dup2(fd, kDescriptor) < 0 || pipe(ends) != 0 || dup2(ends[0], kPipe) < 0 ||
        chdir(directory.c_str()) != 0)
      _exit(1);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(ready[1]);
  char byte = 0;
  bool good = read(ready[0], &byte, 1) == 1;
  close(ready[0]);
  check(good, "the victim did not start");
  before_ = state();
}

Victim::~Victim() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  munmap(word_, 4096);
}

std::string Victim::address() const {
  return std::to_string(reinterpret_cast<unsigned long>(word_));
}

bool Victim::alive() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) ==
             0 &&
         info.si_pid == 0;
}

bool Victim::poked() const {
  return *static_cast<volatile long*>(word_) != 0;
}

std::string Victim::state() const {
  std::string text;
  std::string limits = read_file("/proc/" + std::to_string(pid_) + "/limits");
  text += limits.substr(std::min(limits.find("Max open files"), limits.size()), 60) + " ";
  text += std::to_string(getpriority(PRIO_PROCESS, static_cast<id_t>(pid_))) + " ";
  cpu_set_t processors{};
  sched_getaffinity(pid_, sizeof processors, &processors);
  text += std::to_string(CPU_COUNT(&processors)) + " ";
  return text + read_file("/proc/" + std::to_string(pid_) + "/oom_score_adj");
}

bool Victim::pipe_changed() const {
  struct stat info {};
  std::string path = "/proc/" + std::to_string(pid_) + "/fd/" + std::to_string(kPipe);
  return stat(path.c_str(), &info) != 0 || (info.st_mode & 07777) != 0600;
}

bool Victim::rescheduled() const {
  return state() != before_;
}

Place::Place(const std::string& root, const std::string& name, uid_t user)
    : outside(root + "/outside/" + name), inside(root + "/workspace/" + name), uid(user) {
  for (const std::string& directory :
       {root, root + "/outside", root + "/workspace", outside, outside + "/d", outside + "/empty",
        outside + "/tmp", inside, inside + "/d"}) {
    mkdir(directory.c_str(), 0755);
    give(directory);
  }
  for (const char* file : {"f", "m", "u", "r", "held", "d/x", "tmp/m"}) {
    write_file(outside + "/" + file, "untouched");
    give(outside + "/" + file);
  }
  setxattr((outside + "/m").c_str(), "user.old", "1", 1, 0);
  for (const char* file : {"a", "d/b"}) {
    write_file(inside + "/" + file, "inside");
    give(inside + "/" + file);
  }
  mkfifo((outside + "/fifo").c_str(), 0600);
  give(outside + "/fifo");
}

Place::~Place() {
  if (cleanup) cleanup();
  for (auto at = mounts_.rbegin(); at != mounts_.rend(); ++at) umount2(at->c_str(), MNT_DETACH);
}

void Place::give(const std::string& path) const {
  if (geteuid() == 0) check(lchown(path.c_str(), uid, uid) == 0, "chown " + path);
}

void Place::remember() {
  before_ = snapshot(outside);
}

bool Place::changed() const {
  return snapshot(outside) != before_;
}

void Place::mount_tmpfs(const std::string& path) {
  mkdir(path.c_str(), 0755);
  check(mount("tmpfs", path.c_str(), "tmpfs", 0, "mode=755") == 0, "mount " + path);
  mounts_.push_back(path);
  give(path);
}

void Place::bind(const std::string& what, const std::string& path) {
  check(mount(what.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) == 0, "bind " + path);
  mounts_.push_back(path);
}

std::string Place::environment() const {
  std::string text = "export O='" + outside + "' W='" + inside + "' P='" + attack_program("") + "'";
  if (victim) text += " V=" + std::to_string(victim->pid()) + " A=" + victim->address();
  return text + "\n";
}

}  // namespace stockade::test
