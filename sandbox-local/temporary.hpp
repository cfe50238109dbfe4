// SPDX-License-Identifier: MIT
// The directories that stand at /tmp inside a sandbox: one a session and workspace, so that a file
// written there by one call is found by the next, and none of the host's or of another session's
// is.
#pragma once

#include <map>
#include <string>

#include "framework/fd.hpp"
#include "sandbox/policy.hpp"

namespace stockade {

class TemporaryArea {
 public:
  // Nothing is made before it is needed. `launcher` is the runner, by which permissions are mended
  // when an area is taken away. `parent` is a directory that others may write, too; not /tmp, which
  // every command under the `landlock` backend may write.
  explicit TemporaryArea(std::string launcher, std::string parent = "/var/tmp");
  // Takes all away; what holds much is left to a process that goes on without this one.
  ~TemporaryArea();
  TemporaryArea(const TemporaryArea&) = delete;
  TemporaryArea& operator=(const TemporaryArea&) = delete;

  // Canonical path of the policy's directory. Throws Error `TEMPORARY_AREA` naming the parent.
  std::string directory_for(const SandboxPolicy& policy);

 private:
  void open();

  std::string launcher_;
  std::string parent_;
  std::string base_;                                // 0700, named after nothing
  Fd area_;                                         // it; its lock tells the living from the dead
  std::map<std::string, std::string> directories_;  // session and workspace: the name in `area_`
};

}  // namespace stockade
