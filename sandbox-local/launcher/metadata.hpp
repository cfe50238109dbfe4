// SPDX-License-Identifier: MIT
// What Landlock does not govern: permissions, owners, times, extended attributes. A seccomp filter
// catches the calls. In read-only they are refused in the kernel; in workspace-write they come
// here, and this process performs them itself, on a descriptor that it has judged. It never lets
// the kernel "continue" a call: between a check of a path and its use the command could swap the
// path.
#pragma once

#include <stdint.h>

namespace launcher {

enum class Metadata { refuse, perform };

// Directories below which metadata may be changed, canonical paths, borrowed for ever; and their
// own with `itself`, which a temporary area that is the whole host's does not have.
void allow_metadata_below(const char* directory, bool itself);

// Installs the filter on this process and what it executes. With `perform` returns the listener.
// Needs no_new_privs.
int filter_metadata(Metadata metadata);

// Takes one request from the listener and answers it.
void serve_metadata(int listener);

}  // namespace launcher
