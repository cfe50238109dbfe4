// SPDX-License-Identifier: MIT
// ipc shm KEY | queue NAME | key NAME | find-key NAME | abstract NAME | receive PATH: reaches what
// is shared beside files. `receive` connects to a unix socket, is given a descriptor, and writes to
// it.
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cstddef>
#include <string_view>

#include "attack.hpp"

namespace {

int connect_to(const char* name, bool abstract) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::size_t size = strlen(name);
  if (size + 1 >= sizeof address.sun_path) return -1;
  memcpy(address.sun_path + (abstract ? 1 : 0), name, size);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size + 1);
  return connect(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 ? fd : -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::string_view way = argv[1];
  if (way == "shm") {
    int id = shmget(static_cast<key_t>(strtol(argv[2], nullptr, 0)), 4, 0);
    if (id < 0) return ended(id);
    void* at = shmat(id, nullptr, 0);
    if (at == reinterpret_cast<void*>(-1)) return 1;
    *static_cast<volatile int*>(at) = 0x41414141;
    return 0;
  }
  if (way == "queue") {
    mq_attr attributes{};
    attributes.mq_maxmsg = 1;
    attributes.mq_msgsize = 8;
    return ended(mq_open(argv[2], O_CREAT | O_RDWR, 0600, &attributes));
  }
  constexpr int kUserKeyring = -4;
  if (way == "key") return ended(syscall(SYS_add_key, "user", argv[2], "x", 1, kUserKeyring));
  if (way == "find-key")
    return ended(syscall(SYS_keyctl, 10 /* SEARCH */, kUserKeyring, "user", argv[2], 0));
  if (way == "abstract") {
    int fd = connect_to(argv[2], true);
    return fd >= 0 && write(fd, "x", 1) == 1 ? 0 : 1;
  }
  int fd = connect_to(argv[2], false);
  if (fd < 0) return 1;
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  if (recvmsg(fd, &message, 0) < 0) return 1;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (!header) return 1;
  int received = -1;
  memcpy(&received, CMSG_DATA(header), sizeof received);
  return ended(write(received, "x", 1));
}
