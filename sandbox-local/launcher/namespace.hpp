// SPDX-License-Identifier: MIT
// A view of the file system of its own: everything read-only but what is named.
#pragma once

#include "sandbox-local/launcher/confine.hpp"

namespace launcher {

struct View {
  const Rule* writable;  // directories that stay as they are, their own mounts included
  int writable_count;
  const char* const* pinned;  // directories that may not be renamed, parents before children
  int pinned_count;
  const char* const* read_only;  // in what is writable
  int read_only_count;
  const char* const* hidden;  // empty inside
  int hidden_count;
  const char* tmp;      // directory that stands at /tmp, or null: the host's, read-only
  const char* workdir;  // where the command starts, as it is named inside; null: here
};

struct Namespaces {
  unsigned long flags;  // for clone(2)
  bool user_namespace;  // among them, as this process may not mount without one
  bool network;         // among them: one with nothing but a loopback interface
};
Namespaces namespaces(bool without_network);

// In the first process of the new namespaces: builds the view and enters `workdir`. `user` and
// `group` are those of before.
void build_view(const View& view, const Namespaces& made, unsigned user, unsigned group);

// The standard descriptors that are the host's /dev/null become the view's, whose permissions and
// times cannot be changed through it.
void reopen_null();

}  // namespace launcher
