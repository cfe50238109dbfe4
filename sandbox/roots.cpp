// SPDX-License-Identifier: MIT
#include "sandbox/roots.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#ifdef __linux__
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "framework/error.hpp"
#include "framework/fd.hpp"

namespace stockade {

namespace {

// An O_PATH descriptor of what is there when no symbolic link leads to it.
Fd open_without_links([[maybe_unused]] const std::string& path) {
#ifdef __linux__
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  return Fd(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
#else
  errno = ENOSYS;
  return Fd();
#endif
}

bool normal(std::string_view path) {
  if (!path.starts_with('/')) return false;
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto name = path.substr(0, path.find('/'));
    if (name.empty() || name == "." || name == "..") return false;
    path.remove_prefix(name.size());
  }
  return true;
}

}  // namespace

std::string canonicalize(const std::string& path) {
  // Every call resolves several paths that mostly are canonical; realpath asks for each part.
  if (normal(path) && open_without_links(path)) return path;
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) ? resolved : path;
}

std::string resolve_root(const std::string& path) {
  std::string canonical = canonicalize(path.empty() ? "." : path);
  std::error_code error;
  auto normal = std::filesystem::absolute(canonical, error).lexically_normal().string();
  if (error)
    throw Error("WORKDIR_UNUSABLE",
                "the working directory of this process cannot be told (" + error.message() +
                    "): it may have been removed; change to another, or name the workspace and the "
                    "commands' directory by absolute paths",
                path);
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

bool is_within(const std::string& path, const std::string& ancestor) {
  if (ancestor == "/") return true;
  return path == ancestor || (path.size() > ancestor.size() && path.starts_with(ancestor) &&
                              path[ancestor.size()] == '/');
}

namespace {

std::string identity_of(const struct stat& info) {
  return std::to_string(major(info.st_dev)) + ":" + std::to_string(minor(info.st_dev)) + ":" +
         std::to_string(info.st_ino);
}

}  // namespace

std::string file_identity(int descriptor) {
  struct stat info {};
  return ::fstat(descriptor, &info) == 0 ? identity_of(info) : "";
}

std::string file_identity(const std::string& path) {
  // Not through a link: it could be there for this moment only, and what it leads to would be taken
  // for what was checked.
  if (Fd found = open_without_links(path)) return file_identity(found.get());
  struct stat info {};
  if (errno != ENOSYS) return "";  // ENOSYS: before Linux 5.6, and elsewhere
  return ::lstat(path.c_str(), &info) == 0 ? identity_of(info) : "";
}

void check_workspace_root(const std::string& root,
                          const std::vector<std::string>& protected_paths) {
  auto refuse = [&](const std::string& why) {
    std::string shown = root.substr(0, root.find('\0'));  // where the text of an exception ends
    throw Error("WORKSPACE_REFUSED",
                "the workspace \"" + shown + "\" is refused: " + why + "; nothing was run", root);
  };
  if (root.find('\0') != std::string::npos) refuse("its path holds a NUL byte");
  if (root.size() >= PATH_MAX)
    refuse("its path is longer than " + std::to_string(PATH_MAX - 1) + " bytes");
  if (root.empty() || root.front() != '/') refuse("its path is not absolute");
  if (root == "/") refuse("a sandbox that may write everything is none; choose a directory below");
  for (const char* reserved : {"/proc", "/sys", "/dev", "/run"})
    if (is_within(root, reserved))
      refuse(std::string(reserved) + " belongs to the system; choose a directory of your own");

  struct stat info {};
  if (::stat(root.c_str(), &info) != 0)
    refuse(errno == ENOENT ? "it does not exist; create it first" : describe_errno(errno));
  if (!S_ISDIR(info.st_mode)) refuse("it is not a directory");

  std::string canonical = canonicalize(root);
  if (canonical != root)
    refuse("it leads through a symbolic link to \"" + canonical + "\"; use that");
  for (const auto& path : protected_paths)
    if (std::string real = canonicalize(path); is_within(real, root) || is_within(root, real))
      refuse("it holds stockade's own " + path +
             ", which a command could replace; install stockade elsewhere or choose another "
             "directory");
}

}  // namespace stockade
