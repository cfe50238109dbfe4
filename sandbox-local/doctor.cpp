// SPDX-License-Identifier: MIT
#include "sandbox-local/doctor.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "framework/fields.hpp"
#include "sandbox-local/landlock.hpp"

namespace stockade {

namespace {

std::string read_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool exists(const char* path) {
  return access(path, F_OK) == 0;
}

bool in_container() {
  if (exists("/.dockerenv") || exists("/run/.containerenv")) return true;
  // Readable where /proc/1/environ is not: what the container's manager tells its init.
  return exists("/run/systemd/container") || exists("/run/host/container-manager");
}

// Container managers cover parts of /proc; the kernel then lets no new one be mounted in a user
// namespace, as it would show what is covered.
bool proc_is_masked() {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string line;
  while (std::getline(mounts, line)) {
    std::istringstream fields(line);
    std::string id, parent, device, root, mount_point;
    fields >> id >> parent >> device >> root >> mount_point;
    if (mount_point.starts_with("/proc/") && mount_point != "/proc/sys/fs/binfmt_misc") return true;
  }
  return false;
}

bool has_seccomp_filter() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.starts_with("Seccomp:")) return line.find('2') != std::string::npos;
  return false;
}

}  // namespace

HostCircumstances inspect_circumstances() {
  HostCircumstances found;
  found.container = in_container();
  found.masked_proc = proc_is_masked();
  found.user_namespaces_off = read_line("/proc/sys/kernel/unprivileged_userns_clone") == "0" ||
                              read_line("/proc/sys/user/max_user_namespaces") == "0";
  found.apparmor_restricts =
      read_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1";
  found.seccomp = has_seccomp_filter();
  found.landlock_configured =
      ("," + read_line("/sys/kernel/security/lsm") + ",").find(",landlock,") != std::string::npos;
  utsname name{};
  if (uname(&name) == 0) found.kernel = name.release;
  return found;
}

namespace {

void advise_namespaces(const BackendHost& host, const HostCircumstances& circumstances,
                       const std::string& reason, std::vector<std::string>& advice) {
  auto mentions = [&](const char* word) { return reason.find(word) != std::string::npos; };
  if (mentions("/proc") || mentions("proc on")) {
    if (circumstances.masked_proc)
      advice.push_back(
          "parts of /proc are covered, as in a container: start it with --security-opt "
          "systempaths=unconfined (docker), --security-opt unmask=ALL (podman) or procMount: "
          "Unmasked (kubernetes)");
    return;
  }
  if (!mentions("namespace") && !mentions("uid map")) return;
  if (circumstances.user_namespaces_off)
    advice.push_back(
        "user namespaces are switched off: sysctl -w kernel.unprivileged_userns_clone=1 "
        "user.max_user_namespaces=15000");
  if (circumstances.apparmor_restricts)
    advice.push_back(
        "AppArmor forbids user namespaces to programs without a profile (Ubuntu 24.04): give \"" +
        (host.launcher.empty() ? std::string("stockade-launch") : host.launcher) +
        "\" and bwrap a profile with `userns,` in /etc/apparmor.d, or sysctl -w "
        "kernel.apparmor_restrict_unprivileged_userns=0");
  if (circumstances.container)
    advice.push_back(
        "the container forbids it: start it with --security-opt seccomp=unconfined (docker, "
        "podman), or with a seccomp profile that allows clone and unshare of namespaces, mount and "
        "mount_setattr");
  if (advice.empty() && circumstances.seccomp)
    advice.push_back(
        "a seccomp filter is on this process, and forbids it: start stockade outside of what "
        "installed the filter, or let that allow clone and unshare of namespaces");
  if (advice.empty()) advice.push_back("run as a user who may create user namespaces, or as root");
}

void advise_landlock(const HostCircumstances& circumstances, std::vector<std::string>& advice) {
  if (circumstances.landlock_configured || circumstances.container || circumstances.seccomp)
    advice.push_back(
        "the kernel has Landlock, but a filter hides it: let the container's seccomp profile allow "
        "landlock_create_ruleset, landlock_add_rule and landlock_restrict_self");
  else
    advice.push_back(
        "use a kernel with Landlock, Linux 5.13 or later (6.2 for full enforcement; "
        "this is " +
        circumstances.kernel + "), and add landlock to its lsm= list of security modules");
}

}  // namespace

std::vector<std::string> advise(Backend backend, const BackendHost& host,
                                const HostCircumstances& circumstances,
                                const ProbeVerdict& verdict) {
  std::vector<std::string> advice;
  if (verdict.full()) return advice;
  if (verdict.usable) {
    if (host.landlock_abi < kFullLandlockAbi) advise_landlock(circumstances, advice);
    if (backend == Backend::bwrap && host.root)
      advice.push_back("run stockade as an ordinary user, or use the namespace backend");
    if (backend == Backend::bwrap && host.shared_mounts)
      advice.push_back(
          "use the namespace backend, or make / a private mount (mount "
          "--make-rprivate /) before stockade starts");
    return advice;
  }
  if (verdict.transient) {
    advice.push_back("the host was short of time or resources; try again");
    return advice;
  }
  switch (backend) {
    case Backend::namespace_:
      advise_namespaces(host, circumstances, verdict.reason, advice);
      break;
    case Backend::bwrap:
      if (host.bwrap.empty())
        advice.push_back("install bubblewrap (apt install bubblewrap)");
      else
        advise_namespaces(host, circumstances, verdict.reason, advice);
      break;
    case Backend::landlock:
      if (host.landlock_abi == 0) advise_landlock(circumstances, advice);
      break;
    case Backend::seatbelt:
      break;
  }
  return advice;
}

LocalDoctor::LocalDoctor(Loop& loop, BackendHost host, std::vector<Backend> backends,
                         std::chrono::milliseconds timeout)
    : loop_(loop), host_(std::move(host)), backends_(std::move(backends)), timeout_(timeout) {}

Task<DoctorReport> LocalDoctor::examine() {
  const HostCircumstances circumstances = inspect_circumstances();
  DoctorReport report;
  report.kernel = circumstances.kernel;
  report.user = geteuid();
  report.landlock_abi = host_.landlock_abi;
  for (Backend backend : backends_) {
    auto probing = probe_backend(loop_, backend, host_, timeout_);
    ProbeVerdict verdict = co_await probing;
    BackendReport one;
    one.backend = enum_name(backend);
    one.usable = verdict.usable;
    if (verdict.full()) one.enforcement = SandboxEnforcement::full;
    one.reasons = verdict.partial_reasons;
    if (!verdict.usable) one.reasons = {verdict.reason};
    one.advice = advise(backend, host_, circumstances, verdict);
    if (one.usable && report.chosen.empty()) report.chosen = one.backend;
    report.backends.push_back(std::move(one));
  }
  co_return report;
}

}  // namespace stockade
