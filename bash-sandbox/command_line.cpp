// SPDX-License-Identifier: MIT
#include "bash-sandbox/command_line.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace stockade {

namespace {

constexpr std::size_t kMaxArgument = 131071;  // MAX_ARG_STRLEN less the terminating NUL
constexpr std::size_t kForRunner = 32768;  // its own arguments, a profile with long paths included

// `printf -v` joins its arguments byte for byte; the name is let go of before the command begins,
// on the command's own first line, so that the lines of its messages keep their numbers.
constexpr const char* kJoin =
    "printf -v __stockade_command %s \"$@\"; set --; "
    "eval \"unset -v __stockade_command; $__stockade_command\"";

}  // namespace

std::vector<std::string> bash_command_line(const std::string& command) {
  if (command.size() <= kMaxArgument) return {"bash", "-c", "--", command};
  std::vector<std::string> line{"bash", "-c", "--", kJoin, "bash"};
  for (std::size_t at = 0; at < command.size(); at += kMaxArgument)
    line.push_back(command.substr(at, kMaxArgument));
  return line;
}

std::size_t most_command_line_bytes() {
  // fs/exec.c: a quarter of the stack limit, at most 6 MiB, at least 128 KiB.
  rlimit stack{};
  getrlimit(RLIMIT_STACK, &stack);
  const std::size_t quarter =
      stack.rlim_cur == RLIM_INFINITY ? 6U << 20 : static_cast<std::size_t>(stack.rlim_cur) / 4;
  return std::max<std::size_t>(std::min<std::size_t>(quarter, 6U << 20), 128U << 10) - kForRunner;
}

std::size_t command_line_bytes(const std::vector<std::string>& strings) {
  std::size_t bytes = 0;
  for (const auto& string : strings) bytes += string.size() + 1 + sizeof(char*);
  return bytes;
}

std::string find_program(const std::string& name, int& error) {
  error = 0;
  if (name.find('/') != std::string::npos) return name;
  error = ENOENT;
  const char* set = std::getenv("PATH");
  std::string_view path = set ? set : "/usr/bin:/bin";
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    const std::string directory(path.substr(0, colon));
    path.remove_prefix(colon == std::string_view::npos ? path.size() : colon + 1);
    // A relative one would be looked up wherever the host happens to stand.
    if (!directory.starts_with('/')) continue;
    const std::string file = directory + "/" + name;
    struct stat info {};
    if (stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (access(file.c_str(), X_OK) == 0) {
      error = 0;
      return file;
    }
    error = EACCES;
  }
  return {};
}

}  // namespace stockade
