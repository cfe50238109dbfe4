// SPDX-License-Identifier: MIT
#include "tests/support/program.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

namespace stockade::test {

ProgramResult run_program(const std::vector<std::string>& argv, const ProgramOptions& options) {
  int in[2];
  int out[2];
  int err[2];
  if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
    throw std::runtime_error("no pipe");
  auto started = std::chrono::steady_clock::now();
  pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    setpgid(0, 0);
    for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
    if (options.uid && (setgroups(0, nullptr) || setgid(*options.uid) || setuid(*options.uid)))
      _exit(126);
    if (chdir(options.cwd.c_str())) _exit(126);
    std::vector<char*> args;
    for (const auto& a : argv) args.push_back(const_cast<char*>(a.c_str()));
    args.push_back(nullptr);
    execvp(args[0], args.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  signal(SIGPIPE, SIG_IGN);
  fcntl(in[1], F_SETFL, O_NONBLOCK);

  ProgramResult result;
  std::size_t written = 0;
  bool in_open = true;
  bool out_open = true;
  bool err_open = true;
  auto deadline = started + std::chrono::milliseconds(options.timeout_ms);
  auto close_input = [&] {
    close(in[1]);
    in_open = false;
  };
  if (options.input.empty()) close_input();
  auto drain = [](int fd, bool& open, std::string& into) {
    char chunk[65536];
    ssize_t n = read(fd, chunk, sizeof chunk);
    if (n > 0)
      into.append(chunk, static_cast<std::size_t>(n));
    else
      open = false;
  };
  while (out_open || err_open) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                    deadline - std::chrono::steady_clock::now())
                    .count();
    if (left <= 0) {
      result.timed_out = true;
      kill(-pid, SIGKILL);
      break;
    }
    pollfd fds[3] = {{out_open ? out[0] : -1, POLLIN, 0},
                     {err_open ? err[0] : -1, POLLIN, 0},
                     {in_open ? in[1] : -1, POLLOUT, 0}};
    poll(fds, 3, static_cast<int>(left));
    if (fds[0].revents) drain(out[0], out_open, result.out);
    if (fds[1].revents) drain(err[0], err_open, result.err);
    if (fds[2].revents) {
      ssize_t n = write(in[1], options.input.data() + written, options.input.size() - written);
      if (n > 0) written += static_cast<std::size_t>(n);
      if (n < 0 || written == options.input.size()) close_input();
    }
  }
  if (in_open) close_input();
  close(out[0]);
  close(err[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

std::vector<pid_t> processes_with(const std::string& needle) {
  std::vector<pid_t> found;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = proc ? readdir(proc) : nullptr) {
    pid_t pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0 || pid == getpid()) continue;
    // Read whole and at once: one that ends meanwhile is an error of read(2), which a stream
    // throws.
    std::string line(1 << 16, '\0');
    int file =
        open((std::string("/proc/") + entry->d_name + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, line.data(), line.size());
    if (file >= 0) close(file);
    if (size <= 0) continue;
    line.resize(static_cast<std::size_t>(size));
    for (char& c : line)
      if (c == '\0') c = ' ';
    if (line.find(needle) != std::string::npos) found.push_back(pid);
  }
  if (proc) closedir(proc);
  return found;
}

}  // namespace stockade::test
