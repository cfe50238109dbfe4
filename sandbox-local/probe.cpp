// SPDX-License-Identifier: MIT
#include "sandbox-local/probe.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "framework/completion.hpp"
#include "framework/error.hpp"
#include "framework/fd.hpp"
#include "framework/fields.hpp"
#include "framework/library.hpp"
#include "framework/process.hpp"
#include "sandbox-local/bwrap.hpp"
#include "sandbox-local/landlock.hpp"
#include "sandbox-local/namespace.hpp"
#include "sandbox-local/seatbelt.hpp"
#include "sandbox/roots.hpp"
#include "sandbox/status.hpp"

namespace stockade {

namespace {

// Never through PATH: a directory there that a workspace can write would plant a runner. A file
// that others may write is passed over for the same reason.
std::string find_bwrap() {
  for (const char* path : {"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"}) {
    struct stat info {};
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == 0 &&
        (info.st_mode & (S_IWGRP | S_IWOTH)) == 0 && access(path, X_OK) == 0)
      return path;
  }
  return "";
}

bool root_mount_is_shared() {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string line;
  bool shared = true;  // what cannot be read is not taken for private
  while (std::getline(mounts, line)) {
    // id parent major:minor root mount-point options [optional fields] - …; of several mounts on
    // one place the last is on top.
    std::istringstream fields(line);
    std::string id, parent, device, root, mount_point;
    fields >> id >> parent >> device >> root >> mount_point;
    if (mount_point == "/")
      shared = line.substr(0, line.find(" - ")).find(" shared:") != std::string::npos;
  }
  return shared;
}

// A directory that no backend gives away as a temporary area.
class Scratch {
 public:
  Scratch() {
    const char* home = getenv("HOME");
    for (const char* parent : {"/var/tmp", home ? home : ""}) {
      if (!*parent) continue;
      path_ = std::string(parent) + "/stockade-probe-XXXXXX";
      if (mkdtemp(path_.data())) break;
      path_.clear();
    }
    if (path_.empty()) return;
    char resolved[PATH_MAX];
    if (realpath(path_.c_str(), resolved)) path_ = resolved;
    mkdir(workspace().c_str(), 0700);
    mkdir(outside().c_str(), 0700);
    mkdir(tmp().c_str(), 0700);
    Fd file(open(victim().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  bool usable() const { return !path_.empty(); }
  std::string workspace() const { return path_ + "/workspace"; }
  std::string outside() const { return path_ + "/outside"; }
  std::string tmp() const { return path_ + "/tmp"; }
  std::string victim() const { return outside() + "/victim"; }

 private:
  std::string path_;
};

class ProbeRun final : public ProcessObserver {
 public:
  explicit ProbeRun(Loop& loop) : done(loop) {}
  void on_data(Stream stream, std::span<const char> bytes) override {
    std::string& kept = stream == Stream::status ? status : text;
    std::size_t room = kMaxStatusBytes - std::min(kept.size(), kMaxStatusBytes);
    kept.append(bytes.data(), std::min(bytes.size(), room));
  }
  void on_end(Stream stream) override {
    if (stream == Stream::status) ended_ = true;
    finish();
  }
  void on_exit(ExitStatus how) override {
    exit = how;
    exited_ = true;
    finish();
  }
  void on_failed(SpawnError why) override {
    error = std::move(why);
    done.settle();
  }

  std::string status;
  std::string text;  // both other streams
  ExitStatus exit;
  std::optional<SpawnError> error;
  Completion<> done;

 private:
  void finish() {
    if (ended_ && exited_) done.settle();
  }
  bool ended_ = false;
  bool exited_ = false;
};

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

bool exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

std::vector<std::string> temporary_areas() {
  std::vector<std::string> areas{canonicalize("/tmp")};
#ifdef __linux__
  // Semaphores and shared memory of POSIX are files there; Python's multiprocessing needs them.
  if (exists("/dev/shm")) areas.push_back(canonicalize("/dev/shm"));
#endif
#ifdef _CS_DARWIN_USER_TEMP_DIR
  char directory[PATH_MAX];
  if (confstr(_CS_DARWIN_USER_TEMP_DIR, directory, sizeof directory) > 0)
    areas.push_back(resolve_root(directory));
#endif
  return areas;
}

}  // namespace

BackendHost inspect_host() {
  BackendHost host;
  host.launcher = installation_directory() + "/stockade-launch";
  host.bwrap = find_bwrap();
  if (exists("/usr/bin/sandbox-exec")) host.sandbox_exec = "/usr/bin/sandbox-exec";
  host.protected_paths = {installation_directory(), framework_library(),
                          canonicalize("/proc/self/exe")};
  if (!host.bwrap.empty()) host.protected_paths.push_back(host.bwrap);
  host.temporary_areas = temporary_areas();
  host.root = geteuid() == 0;
  long abi = syscall(444 /* landlock_create_ruleset */, nullptr, 0, 1);
  host.landlock_abi = abi > 0 ? static_cast<int>(abi) : 0;
  host.shared_mounts = root_mount_is_shared();
  return host;
}

ConfinedArgv confine_with(Backend backend, const BackendHost& host, const ConfineRequest& request) {
  switch (backend) {
    case Backend::namespace_:
      return confine_namespace(host, request);
    case Backend::bwrap:
      return confine_bwrap(host, request);
    case Backend::landlock:
      return confine_landlock(host, request);
    case Backend::seatbelt:
      return confine_seatbelt(host, request);
  }
  throw Error("SANDBOX_UNAVAILABLE", "unreachable variant in Backend");
}

std::optional<std::string> missing_runner(Backend backend, const BackendHost& host) {
  if (backend == Backend::seatbelt)
    return host.sandbox_exec.empty() ? std::optional<std::string>(kSandboxExecMissing)
                                     : std::nullopt;
  if (backend == Backend::bwrap && host.bwrap.empty()) return std::string(kBwrapMissing);
  return std::nullopt;
}

namespace {

bool is_transient(int error) {
  return error == EAGAIN || error == EMFILE || error == ENFILE || error == ENOMEM;
}

// What the probe's command did, read from the host afterwards.
void judge(const Scratch& scratch, const std::string& text, ProbeVerdict& verdict) {
  if (exists(scratch.outside() + "/outside")) {
    verdict.reason = "a write outside the workspace was not stopped";
    return;
  }
  if (!exists(scratch.workspace() + "/inside")) {
    verdict.reason = "a write inside the workspace did not land" +
                     (text.empty() ? std::string() : ": " + first_line(text));
    return;
  }
  struct stat victim {};
  verdict.metadata_protected =
      stat(scratch.victim().c_str(), &victim) == 0 && (victim.st_mode & 07777) == 0600;
  if (!verdict.metadata_protected)
    verdict.partial_reasons.emplace_back("a chmod outside the workspace was not stopped");
  verdict.usable = true;
}

}  // namespace

Task<ProbeVerdict> probe_backend(Loop& loop, Backend backend, BackendHost host,
                                 std::chrono::milliseconds timeout) {
  ProbeVerdict verdict;
  if (auto missing = missing_runner(backend, host)) {
    verdict.reason = *missing;
    co_return verdict;
  }
  if (backend != Backend::seatbelt && !exists(host.launcher)) {
    verdict.reason = "the launcher " + host.launcher + " is missing; install stockade again";
    co_return verdict;
  }
  Scratch scratch;
  if (!scratch.usable()) {
    verdict.reason = "no directory to probe in: neither /var/tmp nor $HOME can be written";
    co_return verdict;
  }

  ConfineRequest wanted;
  wanted.policy = {ConfinedSandboxMode::workspace_write, scratch.workspace()};
  wanted.working_directory = scratch.workspace();
  wanted.workspace_identity = file_identity(scratch.workspace());
  if (backend == Backend::namespace_ || backend == Backend::bwrap) wanted.tmp = scratch.tmp();
  if (!wanted.tmp.empty()) wanted.tmp_identity = file_identity(wanted.tmp);
  wanted.argv = {
      // In a subshell: a redirection that fails ends a shell whose built-in `:` it belongs to.
      "/bin/sh", "-c", ": > inside; (: > \"$1/outside\"); chmod 777 \"$1/victim\"; exit 0", "probe",
      scratch.outside()};
  ConfinedArgv confined = confine_with(backend, host, wanted);
  verdict.partial_reasons = confined.enforcement_reasons;

  SpawnRequest request;
  request.argv = confined.argv;
  request.environment = {"PATH=/usr/bin:/bin"};
  request.working_directory = scratch.workspace();
  request.status_channel = true;
  request.block_term = confined.block_term;
  ProbeRun run(loop);
  bool timed_out = false;
  Timer deadline(loop);
  auto spawned = Process::spawn(loop, std::move(request), run);
  if (auto* error = std::get_if<SpawnError>(&spawned)) {
    run.error = *error;
  } else {
    deadline.start(timeout, [&] {
      timed_out = true;
      run.done.settle();
    });
    co_await run.done;
  }
  spawned = nullptr;
  if (run.error) {
    verdict.reason = run.error->message();
    verdict.transient = is_transient(run.error->error);
    co_return verdict;
  }

  if (timed_out) {
    verdict.reason = "the probe did not end within " + std::to_string(timeout.count()) + " ms";
    verdict.transient = true;
    co_return verdict;
  }
  RunnerStatus status = read_status(run.status);
  bool ran = confined.status_channel ? status.command_ran() : run.exit.code == 0;
  if (!ran) {
    verdict.reason = !status.failure.empty() ? status.failure
                     : run.text.empty()      ? "the runner ended before it was ready"
                                             : first_line(run.text);
    co_return verdict;
  }
  judge(scratch, run.text, verdict);
  co_return verdict;
}

}  // namespace stockade
