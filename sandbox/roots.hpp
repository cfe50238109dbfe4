// SPDX-License-Identifier: MIT
// Paths that bound a sandbox: how they are resolved, and which cannot be a workspace.
#pragma once

#include <string>
#include <vector>

namespace stockade {

// realpath(3) when the path exists, else the path exactly as it is spelled. Not "weakly canonical":
// resolving only an existing prefix would name a directory that nobody checked.
std::string canonicalize(const std::string& path);

// canonicalize, then lexical normalisation of what is left; absolute in any case. In this order a
// path with `symlink/..` means the directory that a process there really runs in.
// "" is the working directory of this process. Throws WORKDIR_UNUSABLE when that is needed and
// gone.
std::string resolve_root(const std::string& path);

// True when `path` is `ancestor` or below it; both absolute and normalised.
bool is_within(const std::string& path, const std::string& ancestor);

// `MAJOR:MINOR:INODE` of what is there now, "" when nothing is: who opens the path later can tell
// whether it is still the same.
std::string file_identity(const std::string& path);
std::string file_identity(int descriptor);

// Throws Error `WORKSPACE_REFUSED` naming the root: a missing path, a non-directory, `/`, and
// /proc, /sys, /dev, /run with what is in them, each of which would undo the sandbox or write to
// the kernel; also whatever contains or lies in one of `protected_paths` (stockade's own files, the
// runner), which a command could replace to escape in the next call.
void check_workspace_root(const std::string& root, const std::vector<std::string>& protected_paths);

}  // namespace stockade
