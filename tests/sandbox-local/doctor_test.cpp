// SPDX-License-Identifier: MIT
#include "sandbox-local/doctor.hpp"

#include "tests/support/catch.hpp"

using namespace stockade;

namespace {

const BackendHost kHost{"/lib/stockade-launch", "/usr/bin/bwrap", {}, false, 7, false};

ProbeVerdict unusable(std::string reason) {
  ProbeVerdict verdict;
  verdict.reason = std::move(reason);
  return verdict;
}

ProbeVerdict partial(std::string reason) {
  ProbeVerdict verdict;
  verdict.usable = true;
  verdict.partial_reasons = {std::move(reason)};
  return verdict;
}

std::string advice(Backend backend, const BackendHost& host, const HostCircumstances& found,
                   const ProbeVerdict& verdict) {
  std::string text;
  for (const auto& step : advise(backend, host, found, verdict)) text += step + "\n";
  return text;
}

const std::string kNoNamespace =
    "cannot create a user namespace and in it a mount namespace: Operation not permitted";

}  // namespace

TEST_CASE("doctor: what is full needs no advice") {
  ProbeVerdict full;
  full.usable = true;
  for (Backend backend : {Backend::namespace_, Backend::bwrap, Backend::landlock})
    CHECK(advice(backend, kHost, {}, full).empty());
}

TEST_CASE("doctor: each cause that forbids user namespaces has its own cure") {
  HostCircumstances sysctl;
  sysctl.user_namespaces_off = true;
  HostCircumstances ubuntu;
  ubuntu.apparmor_restricts = true;
  HostCircumstances container;
  container.container = true;
  HostCircumstances filtered;
  filtered.seccomp = true;
  for (const auto& [backend, reason] :
       {std::pair{Backend::namespace_, kNoNamespace},
        std::pair{Backend::bwrap, std::string("bwrap: setting up uid map: Permission denied")}}) {
    CHECK_THAT(advice(backend, kHost, sysctl, unusable(reason)),
               ContainsSubstring("kernel.unprivileged_userns_clone=1"));
    auto profile = advice(backend, kHost, ubuntu, unusable(reason));
    CHECK_THAT(profile, ContainsSubstring("apparmor_restrict_unprivileged_userns=0") &&
                            ContainsSubstring("\"/lib/stockade-launch\""));
    CHECK_THAT(advice(backend, kHost, container, unusable(reason)),
               ContainsSubstring("seccomp=unconfined"));
    CHECK_THAT(advice(backend, kHost, filtered, unusable(reason)),
               ContainsSubstring("seccomp filter is on this process"));
    CHECK_THAT(advice(backend, kHost, {}, unusable(reason)), ContainsSubstring("as root"));
  }
}

TEST_CASE("doctor: a covered proc is told with the flags that uncover it") {
  HostCircumstances masked;
  masked.masked_proc = true;
  masked.container = true;
  for (const char* reason : {"cannot mount /proc: Operation not permitted",
                             "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"})
    CHECK_THAT(advice(Backend::namespace_, kHost, masked, unusable(reason)),
               ContainsSubstring("systempaths=unconfined") && ContainsSubstring("procMount"));
}

TEST_CASE("doctor: a missing bwrap is to be installed") {
  BackendHost host = kHost;
  host.bwrap.clear();
  CHECK_THAT(advice(Backend::bwrap, host, {}, unusable("no trusted bwrap")),
             ContainsSubstring("apt install bubblewrap"));
}

TEST_CASE("doctor: a kernel without Landlock and a filter that hides it are told apart") {
  BackendHost host = kHost;
  host.landlock_abi = 0;
  HostCircumstances old;
  old.kernel = "5.10.0";
  CHECK_THAT(advice(Backend::landlock, host, old, unusable("no Landlock")),
             ContainsSubstring("this is 5.10.0"));
  HostCircumstances hidden;
  hidden.landlock_configured = true;
  CHECK_THAT(advice(Backend::landlock, host, hidden, unusable("no Landlock")),
             ContainsSubstring("landlock_create_ruleset"));
}

TEST_CASE("doctor: what works only partially is told how it becomes full") {
  BackendHost root = kHost;
  root.root = true;
  CHECK_THAT(advice(Backend::bwrap, root, {}, partial("as root, …")),
             ContainsSubstring("ordinary user"));
  BackendHost shared = kHost;
  shared.shared_mounts = true;
  CHECK_THAT(advice(Backend::bwrap, shared, {}, partial("shared")),
             ContainsSubstring("--make-rprivate"));
}

TEST_CASE("doctor: a passing shortage is only to be tried again") {
  ProbeVerdict late = unusable("the probe did not end within 5000 ms");
  late.transient = true;
  CHECK_THAT(advice(Backend::namespace_, kHost, {}, late), ContainsSubstring("try again"));
}
