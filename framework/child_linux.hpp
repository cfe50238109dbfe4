// SPDX-License-Identifier: MIT
// What a child does between clone and exec, in the host's own memory and while the host goes on.
#pragma once

namespace stockade {

// All of it belongs to the host, and stays as it is until the child has left the host's memory.
struct ChildPlan {
  const char* const* programs = nullptr;  // absolute paths, tried in turn; ends with a null
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  const char* directory = nullptr;
  int descriptors[4] = {-1, -1, -1, -1};  // of the host, above 3; -1: /dev/null for 0, none for 3
  bool block_term = false;

  enum Step : int { none, directory_step, null_step, program_step };
  // What failed, by the child; to be read once it has ended.
  volatile Step failed = none;
  volatile int error = 0;  // errno
};

// Whether a child can run beside the thread that made it. Where it cannot, clone() must be called
// with CLONE_VFORK.
extern const bool kChildRunsBeside;

// For clone(), with all signals blocked: what handles them is the host's. Needs 4 KiB of stack.
int run_child(void* plan);

}  // namespace stockade
