// SPDX-License-Identifier: MIT
// Mounts, handles, /proc/sys, other processes, and what is shared beside files.
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "tests/attacks/attack.hpp"

namespace stockade::test {

namespace {

bool looked(const Place& place) {
  return place.holds();
}

bool killed(const Place& place) {
  return !place.victim->alive();
}

bool killed_soon(const Place& place) {
  for (int i = 0; i < 30 && place.victim->alive(); ++i) usleep(10'000);
  return !place.victim->alive();
}

bool poked(const Place& place) {
  return place.victim->poked();
}

bool pipe_changed(const Place& place) {
  return place.victim->pipe_changed();
}

bool rescheduled(const Place& place) {
  return place.victim->rescheduled();
}

void read_only_mount(Place& place) {
  place.mount_tmpfs(place.outside + "/mnt");
  std::string path = place.outside + "/mnt";
  if (mount(nullptr, path.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0)
    throw std::runtime_error("remount");
}

void domain_name(Place& place) {
  if (setdomainname("untouched", 9) != 0) throw std::runtime_error("setdomainname");
  place.holds = [] {
    utsname names{};
    uname(&names);
    return std::strcmp(names.domainname, "untouched") != 0;
  };
}

void host_name(Place& place) {
  if (sethostname("untouched", 9) != 0) throw std::runtime_error("sethostname");
  place.holds = [] {
    utsname names{};
    uname(&names);
    return std::strcmp(names.nodename, "untouched") != 0;
  };
}

void shared_memory(Place& place) {
  constexpr key_t kKey = 0x57a7cade;
  int old = shmget(kKey, 0, 0);
  if (old >= 0) shmctl(old, IPC_RMID, nullptr);
  int id = shmget(kKey, 4096, IPC_CREAT | 0600);
  shmid_ds state{};
  if (id < 0 || shmctl(id, IPC_STAT, &state) != 0) throw std::runtime_error("shmget");
  state.shm_perm.uid = place.uid;
  shmctl(id, IPC_SET, &state);
  auto* word = static_cast<volatile int*>(shmat(id, nullptr, 0));
  *word = 0;
  place.holds = [id, word] {
    bool written = *word != 0;
    shmdt(const_cast<int*>(word));
    shmctl(id, IPC_RMID, nullptr);
    return written;
  };
}

void message_queue(Place& place) {
  mq_unlink("/stockade-attack");
  place.holds = [] { return mq_unlink("/stockade-attack") == 0; };
}

void key(Place& place) {
  std::string name = "stockade-" + std::to_string(getpid()) + place.inside;
  write_file(place.inside + "/key", name);
  place.give(place.inside + "/key");
  uid_t uid = place.uid;
  place.holds = [name, uid] {
    ProgramOptions options;
    if (geteuid() == 0) options.uid = uid;
    return run_program({attack_program("ipc"), "find-key", name}, options).status == 0;
  };
}

int listen_at(const std::string& name, bool abstract) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 2 > sizeof address.sun_path) throw std::runtime_error("long socket path");
  std::memcpy(address.sun_path + (abstract ? 1 : 0), name.data(), name.size());
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 5) != 0)
    throw std::runtime_error("cannot listen at " + name);
  return fd;
}

void abstract_socket(Place& place) {
  std::string name = "stockade-attack-" + std::to_string(getpid());
  write_file(place.inside + "/abstract", name);
  int fd = listen_at(name, true);
  place.holds = [fd] {
    pollfd waiting{fd, POLLIN, 0};
    bool connected = poll(&waiting, 1, 0) > 0;
    close(fd);
    return connected;
  };
}

// A service of the user's that gives who asks a descriptor of $O/f.
void service(Place& place) {
  std::string path = place.outside + "/s";
  std::string given = place.outside + "/f";
  // By a short name, as a socket's path is.
  int back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (chdir(place.outside.c_str()) != 0) throw std::runtime_error("chdir");
  int listener = listen_at("s", false);
  if (fchdir(back) != 0) throw std::runtime_error("fchdir");
  close(back);
  place.give(path);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
      int peer = accept(listener, nullptr, nullptr);
      int file = open(given.c_str(), O_RDWR | O_CLOEXEC);
      char byte = 'x';
      iovec data{&byte, 1};
      alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))]{};
      msghdr message{};
      message.msg_iov = &data;
      message.msg_iovlen = 1;
      message.msg_control = space;
      message.msg_controllen = sizeof space;
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &file, sizeof file);
      if (sendmsg(peer, &message, MSG_NOSIGNAL) < 0) _exit(1);
      close(file);
      close(peer);
    }
  }
  close(listener);
  place.remember();
  std::string was = read_file(given);
  place.holds = [pid, given, was] {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return read_file(given) != was;
  };
}

}  // namespace

std::vector<Attack> kernel_attacks() {
  constexpr unsigned kVictim = Attack::victim;
  constexpr unsigned kRootMounts = Attack::root_only | Attack::mounts;
  return {
      {"remount / for writing", "mount -o remount,bind,rw /; touch $O/new"},
      {"remount for writing in a user namespace",
       "unshare -Urm sh -c 'mount -o remount,bind,rw /; mount -o remount,bind,rw $O; touch $O/new' "
       "|| touch $O/new"},
      {"remount what the host has read-only", "mount -o remount,bind,rw $O/mnt; touch $O/mnt/x", "",
       kRootMounts, read_only_mount},
      {"mount_setattr", "$P/mount_attributes $O/mnt; touch $O/mnt/x", "", kRootMounts,
       read_only_mount},
      {"mount a new file system on it",
       "mount -t tmpfs none $O/d && touch $O/d/new; umount $O/d; "
       "mount --bind $O $W/d; touch $W/d/new; umount $W/d",
       "", kRootMounts},
      {"open_by_handle_at", "$P/handle $W $O/f", "", Attack::root_only},
      {"open_by_handle_at in a user namespace", "$P/handle $W $O/f userns || $P/handle $W $O/f", "",
       Attack::root_only},
      {"/proc/sys", "echo attacked > /proc/sys/kernel/domainname", "", kRootMounts, domain_name,
       looked},
      {"/proc/sys on a /proc of its own",
       "unshare -Urmpf sh -c 'mount -t proc proc /proc; echo attacked > "
       "/proc/sys/kernel/domainname' || echo attacked > /proc/sys/kernel/domainname",
       "", kRootMounts, domain_name, looked},
      {"host name", "echo attacked > /proc/sys/kernel/hostname; hostname attacked", "", kRootMounts,
       host_name, looked},
      {"kill -9", "kill -9 $V", "", kVictim, nullptr, killed},
      {"kill -STOP", "kill -STOP $V", "", kVictim, nullptr, killed},
      {"kill -9 -1", "kill -9 -1", "", kVictim | Attack::mounts | Attack::alone | Attack::direct,
       nullptr, killed_soon},
      {"process_vm_writev", "$P/poke vm $V $A", "", kVictim, nullptr, poked},
      {"ptrace", "$P/poke ptrace $V $A", "", kVictim, nullptr, poked},
      {"/proc/PID/mem", "$P/poke mem $V $A", "", kVictim, nullptr, poked},
      {"pidfd_getfd", "$P/poke fd $V 10", "", kVictim},
      {"/proc/PID/fd", "echo x > /proc/$V/fd/10", "", kVictim},
      {"/proc/PID/cwd", "touch /proc/$V/cwd/new", "", kVictim},
      {"chmod by /proc/PID/fd", "$P/metadata chmod /proc/$V/fd/10", "", kVictim},
      {"chmod of another process's pipe", "$P/metadata chmod /proc/$V/fd/11", "", kVictim, nullptr,
       pipe_changed},
      {"prlimit", "prlimit --pid $V --nofile=64:64", "", kVictim, nullptr, rescheduled},
      {"renice", "renice -n 5 -p $V", "landlock/*/user", kVictim | Attack::beyond, nullptr,
       rescheduled},
      {"taskset", "taskset -p 1 $V", "landlock/*/user", kVictim | Attack::beyond, nullptr,
       rescheduled},
      {"oom_score_adj", "echo 500 > /proc/$V/oom_score_adj", "", kVictim, nullptr, rescheduled},
      {"System V shared memory", "$P/ipc shm 0x57a7cade", "landlock/*/*",
       Attack::mounts | Attack::beyond, shared_memory, looked},
      {"POSIX message queue", "$P/ipc queue /stockade-attack", "landlock/*/*",
       Attack::mounts | Attack::beyond, message_queue, looked},
      {"user keyring", "$P/ipc key \"$(cat $W/key)\"", "namespace/*/root bwrap/*/root landlock/*/*",
       Attack::beyond, key, looked},
      {"abstract unix socket", "$P/ipc abstract $(cat $W/abstract)", "", Attack::none,
       abstract_socket, looked},
      {"service behind a unix socket's path", "cd $O; $P/ipc receive s", "*/*/*", Attack::beyond,
       service, looked},
  };
}

}  // namespace stockade::test
