// SPDX-License-Identifier: MIT
// stockade-launch: the runner binary. It confines a process, which becomes the command, and stays
// as the owner of the command's processes.
//
//   stockade-launch [ROLE] [OPTION]... -- ARGV...
//   stockade-launch --probe
//
// Roles:
//   (none)       the `landlock` backend: Landlock, and seccomp for what Landlock does not govern
//   --namespace  the `namespace` backend: mount, PID and IPC namespaces (and a user namespace where
//                they need one), a read-only view, Landlock on top
//   --stub       the last step inside bwrap: Landlock as a second wall, whose absence is no failure
// Options:
//   --ro PATH, --rw PATH    what may be read and executed, what may be written (repeatable)
//   --identity ID           of the --rw PATH before it: MAJOR:MINOR:INODE that it must still have;
//                           no symbolic link may lead there
//   --pin DIR, --protect PATH, --hide PATH   (--namespace) what may not be renamed, what stays
//                           read-only in a writable directory, what is empty inside; passed over
//                           where they do not exist
//   --no-network            (--namespace) nothing but a loopback interface
//   --tmp DIR               stands at /tmp (--namespace)
//   --chdir DIR             where the command starts
//   --status-fd N           report there (sandbox/status.hpp) and not on stderr
//
// Exit status: the command's, or its signal; 125 when it refuses.
#include <errno.h>
#include <linux/fcntl.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/stat.h>
#include <linux/time_types.h>
#include <linux/wait.h>

#include "sandbox-local/launcher/confine.hpp"
#include "sandbox-local/launcher/metadata.hpp"
#include "sandbox-local/launcher/namespace.hpp"
#include "sandbox-local/launcher/report.hpp"
#include "sandbox-local/launcher/supervise.hpp"
#include "sandbox-local/launcher/sys.hpp"

namespace launcher {

namespace {

constexpr int kSigChld = 17;
constexpr int kSigKill = 9;
constexpr int kSigTerm = 15;
constexpr uint64_t kTermBit = 1ULL << (kSigTerm - 1);

enum class Role { landlock, name_space, stub };

// Sinks, sources and terminals, the latter of the view's own.
constexpr const char* kDevices[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                    "/dev/urandom", "/dev/tty",  "/dev/ptmx", "/dev/pts"};

struct Paths {
  const char* at[kMaxRules] = {};
  int count = 0;
  void add(const char* path) {
    if (count == kMaxRules) usage_error("too many paths, at ", path);
    at[count++] = path;
  }
};

struct Rules {
  Rule at[kMaxRules];
  int count = 0;
  void add(const Rule& rule) {
    if (count == kMaxRules) usage_error("too many paths, at ", rule.path);
    at[count++] = rule;
  }
};

struct Options {
  Role role = Role::landlock;
  Rules rules;
  Paths pinned;
  Paths read_only;
  Paths hidden;
  bool no_network = false;
  const char* tmp = nullptr;
  const char* workdir = nullptr;
  int status_fd = 0;  // 0: none
  char** command = nullptr;
};

int parse_descriptor(const char* text) {
  int number = 0;
  const char* at = text;
  for (; *at >= '0' && *at <= '9' && number < 1 << 20; ++at) number = number * 10 + (*at - '0');
  if (!*text || *at || number < 3 || number > 1 << 20)
    usage_error("--status-fd requires a descriptor above 2, got ", text);
  return number;
}

void parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc && !options.command; ++i) {
    auto value = [&](const char* missing) {
      if (i + 1 >= argc || same(argv[i + 1], "--")) usage_error(missing);
      return argv[++i];
    };
    const char* word = argv[i];
    if (same(word, "--")) {
      options.command = argv + i + 1;
    } else if (same(word, "--ro")) {
      options.rules.add(Rule{value("--ro requires a path"), kReadOnly});
    } else if (same(word, "--rw")) {
      options.rules.add(Rule{value("--rw requires a path"), kReadWrite});
    } else if (same(word, "--identity")) {
      const char* identity = value("--identity requires MAJOR:MINOR:INODE");
      if (options.rules.count == 0)
        usage_error("--identity must follow the --rw that it belongs to");
      Rule& rule = options.rules.at[options.rules.count - 1];
      rule.identity = identity;
      rule.follow = Follow::no_links;
    } else if (same(word, "--pin")) {
      options.pinned.add(value("--pin requires a directory"));
    } else if (same(word, "--protect")) {
      options.read_only.add(value("--protect requires a path"));
    } else if (same(word, "--hide")) {
      options.hidden.add(value("--hide requires a path"));
    } else if (same(word, "--no-network")) {
      options.no_network = true;
    } else if (same(word, "--tmp")) {
      options.tmp = value("--tmp requires a directory");
    } else if (same(word, "--chdir")) {
      options.workdir = value("--chdir requires a directory");
    } else if (same(word, "--stub")) {
      options.role = Role::stub;
    } else if (same(word, "--namespace")) {
      options.role = Role::name_space;
    } else if (same(word, "--status-fd")) {
      options.status_fd = parse_descriptor(value("--status-fd requires a number"));
    } else if (same(word, "--probe")) {
      usage_error("--probe takes no other arguments");
    } else {
      usage_error("unknown argument: ", word);
    }
  }
  if (!options.command || !*options.command) usage_error("missing `-- <argv>...` command");
  bool needs_view = options.pinned.count || options.read_only.count || options.hidden.count ||
                    options.no_network || options.tmp;
  if (needs_view && options.role != Role::name_space)
    usage_error("--pin, --protect, --hide, --no-network and --tmp need --namespace");
}

// `body` in a process of its own, from which it never returns, but in this process's memory:
// nothing is copied for it, and what it writes is seen here. With CLONE_VFORK this process waits
// until that one executes a program or ends; without, the two go on side by side.
template <typename Body>
long spawn(unsigned long flags, Body body) {
  alignas(16) static char stack[65536];
  static Body kept = body;
  return stockade_launch_clone(
      flags | CLONE_VM | kSigChld, stack + sizeof stack,
      [](void* data) {
        (*static_cast<Body*>(data))();
        exit_now(kRefused);
      },
      &kept);
}

struct Start {
  const Options& options;
  char** environment;
  uint64_t mask;  // as this program was started
  int abi;
  Shared* shared;
};

enum class Filter { none, refuse, perform };

// The last steps before the command, in the process that becomes it.
[[noreturn]] void become_command(const Start& start, int ruleset, Filter filter) {
  sys(__NR_prctl, PR_SET_PDEATHSIG, kSigKill, 0, 0, 0);
  restrict_self(ruleset);
  if (filter == Filter::perform) start.shared->listener = filter_metadata(Metadata::perform);
  report_ready(start.abi);
  // Started with SIGTERM blocked, so that a launcher outlives the command's traps.
  set_signal_mask(start.mask & ~kTermBit);
  long error = execute(start.options.command, start.environment);
  start.shared->listener = -1;
  report_exec_failed(start.options.command[0], error);
}

// Waits until the command has ended; with this process, the first of its PID namespace, all others
// in it end.
[[noreturn]] void be_init(long command, Shared* shared) {
  close_fd(0);
  for (long deadline = -1;;) {
    int status = 0;
    long pid = sys(__NR_wait4, -1, &status, deadline < 0 ? 0 : WNOHANG, nullptr);
    if (pid == command) {
      shared->wait_status = status;
      shared->has_wait_status = 1;
      deadline = clock_ms() + kLingerMs;
    } else if (pid == 0) {
      if (clock_ms() >= deadline) exit_now(0);
      __kernel_timespec pause{0, 2'000'000};
      sys(__NR_nanosleep, &pause, nullptr);
    } else if (pid < 0 && pid != -EINTR) {
      // Nothing is left. The host is told here, as the kernel takes the namespaces apart before it
      // tells this process's parent.
      if (shared->has_wait_status && !shared->reported) {
        report_end(shared->wait_status);
        shared->end_reported = 1;
      }
      exit_now(0);
    }
  }
}

bool host_is_gone() {
  pollfd status{status_descriptor(), 0, 0};
  __kernel_timespec now{0, 0};
  return sys(__NR_ppoll, &status, 1, &now, nullptr, 0) > 0 && (status.revents & POLLERR);
}

[[noreturn]] void run_in_namespaces(const Start& start) {
  const Options& options = start.options;
  auto user = static_cast<unsigned>(sys(__NR_geteuid));
  auto group = static_cast<unsigned>(sys(__NR_getegid));
  Namespaces made = namespaces(options.no_network);
  long init = spawn(made.flags, [&] {
    sys(__NR_prctl, PR_SET_PDEATHSIG, kSigKill, 0, 0, 0);
    // Its signal is lost when the parent died before that line.
    if (host_is_gone()) exit_now(kRefused);
    build_view(View{options.rules.at, options.rules.count, options.pinned.at, options.pinned.count,
                    options.read_only.at, options.read_only.count, options.hidden.at,
                    options.hidden.count, options.tmp, options.workdir},
               made, user, group);
    reopen_null();

    constinit static Rules rules;  // what Landlock is to allow in the view
    rules.add(Rule{"/", kReadOnly});
    for (const char* device : kDevices) rules.add(Rule{device, kReadWrite, Follow::links, true});
    if (options.rules.count > 0) rules.add(Rule{"/dev/shm", kReadWrite, Follow::links, true});
    if (options.tmp) rules.add(Rule{"/tmp", kReadWrite});
    for (int i = 0; i < options.rules.count; ++i) rules.add(options.rules.at[i]);
    int ruleset = make_ruleset(start.abi, rules.at, rules.count);

    drop_capabilities(user != 0);
    // From before the command is there, which must not read or steer what waits for it: this
    // process and the other one in this memory. Not earlier, as only who is dumpable can map its
    // user.
    sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    long command = spawn(CLONE_VFORK, [&] { become_command(start, ruleset, Filter::none); });
    if (command < 0) refuse("cannot start a process", nullptr, command);
    be_init(command, start.shared);
  });
  if (init < 0)
    refuse(made.user_namespace ? "cannot create a user namespace and in it a mount namespace"
                               : "cannot create a mount namespace",
           nullptr, init);
  drop_capabilities(true);
  supervise(Waiting{start.shared, init});
}

[[noreturn]] void run_here(const Start& start) {
  const Options& options = start.options;
  bool stub = options.role == Role::stub;
  // Also below bwrap, whose first process would take the orphans otherwise: what the command leaves
  // behind must be seen here to be given its time to end.
  sys(__NR_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (options.workdir)
    if (long error = sys(__NR_chdir, options.workdir))
      refuse("cannot enter the working directory", options.workdir, error);
  int ruleset = make_ruleset(start.abi, options.rules.at, options.rules.count);
  drop_capabilities(false);
  Filter filter = stub ? Filter::none : Filter::refuse;
  for (int i = 0; !stub && i < options.rules.count; ++i) {
    const Rule& rule = options.rules.at[i];
    if (rule.access != kReadWrite || same(rule.path, "/dev/null")) continue;
    allow_metadata_below(rule.path, rule.identity != nullptr);
    filter = Filter::perform;
  }
  // Shared descriptors, until exec: the filter's listener is made in the child and served here; the
  // ruleset is closed there, and its number may be the listener's by now.
  sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  // On this process as well, which has no use for what it refuses: the kernel takes a filter apart
  // with its last process, and the command's end is waited for.
  if (filter == Filter::refuse) filter_metadata(Metadata::refuse);
  long command = spawn(CLONE_VFORK | CLONE_FILES, [&] { become_command(start, ruleset, filter); });
  if (command < 0) refuse("cannot start a process", nullptr, command);
  supervise(Waiting{start.shared, command});
}

int probe() {
  long error = 0;
  int abi = landlock_abi(&error);
  if (abi <= 0) refuse("Landlock is not enabled in this kernel", nullptr, error);
  const char* verdict =
      abi >= kFullAbi ? "landlock: fully enforced\n" : "landlock: partially enforced (older ABI)\n";
  sys(__NR_write, 1, verdict, length(verdict));
  return 0;
}

}  // namespace

int run(int argc, char** argv, char** environment) {
  if (argc >= 2 && same(argv[1], "--probe")) {
    if (argc > 2) usage_error("--probe takes no other arguments");
    return probe();
  }
  // Zeros, so that neither a page of the file nor one of memory is touched for what is not used.
  constinit static Options options;
  parse(argc, argv, options);

  if (options.status_fd > 0)
    if (long error = sys(__NR_fcntl, options.status_fd, F_SETFD, FD_CLOEXEC))
      refuse("the status descriptor is not open", nullptr, error);
  close_inherited(options.status_fd);
  constinit static Shared shared{};
  shared.listener = -1;
  open_report(options.status_fd, &shared);

  // The host's death ends this process, and with it the command. Where nothing but this process can
  // end the whole tree, it must live to do so: it sees the closed status channel.
  if (options.role != Role::landlock || options.status_fd == 0)
    sys(__NR_prctl, PR_SET_PDEATHSIG, kSigKill, 0, 0, 0);
  uint64_t mask = block_signals();

  long error = 0;
  int abi = landlock_abi(&error);
  if (abi <= 0 && options.role == Role::landlock)
    refuse("Landlock is not enabled in this kernel", nullptr, error);
  if (abi < kFullAbi && options.role == Role::landlock && options.status_fd == 0) {
    const char* notice = "landlock-run: partial enforcement (older Landlock ABI)\n";
    sys(__NR_write, 2, notice, length(notice));
  }
  Start start{options, environment, mask, abi, &shared};
  if (options.role == Role::name_space) run_in_namespaces(start);
  run_here(start);
}

}  // namespace launcher
