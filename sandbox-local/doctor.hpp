// SPDX-License-Identifier: MIT
// Runs every backend of this machine and says what to do about those that do not work.
#pragma once

#include <chrono>

#include "framework/loop.hpp"
#include "sandbox-local/backend.hpp"
#include "sandbox-local/probe.hpp"
#include "sandbox/doctor.hpp"

namespace stockade {

// What explains a failure and is no backend's own business.
struct HostCircumstances {
  bool container = false;            // podman, docker, kubernetes, lxc
  bool masked_proc = false;          // something is mounted over a part of /proc
  bool user_namespaces_off = false;  // kernel.unprivileged_userns_clone or user.max_user_namespaces
  bool apparmor_restricts = false;   // kernel.apparmor_restrict_unprivileged_userns (Ubuntu 24.04)
  bool seccomp = false;              // a filter is on this process already
  bool landlock_configured = false;  // `landlock` stands in the kernel's list of security modules
  std::string kernel;                // release
};

// Reads /proc and /sys; spawns nothing.
HostCircumstances inspect_circumstances();

// Pure: what to do so that `backend` works, or enforces fully.
std::vector<std::string> advise(Backend backend, const BackendHost& host,
                                const HostCircumstances& circumstances,
                                const ProbeVerdict& verdict);

class LocalDoctor final : public SandboxDoctor {
 public:
  LocalDoctor(Loop& loop, BackendHost host, std::vector<Backend> backends,
              std::chrono::milliseconds timeout);
  Task<DoctorReport> examine() override;

 private:
  Loop& loop_;
  BackendHost host_;
  std::vector<Backend> backends_;
  std::chrono::milliseconds timeout_;
};

}  // namespace stockade
