// SPDX-License-Identifier: MIT
// What one confined `true` costs, beside `bash -c true` spawned plainly with pipes. Every round
// runs each contestant once, in turn, so that the machine's load weighs on all alike; the ratio of
// medians is the result, the microseconds are only context.
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "bash-sandbox/executor.hpp"
#include "framework/error.hpp"
#include "framework/fields.hpp"
#include "sandbox-local/bwrap.hpp"
#include "sandbox-local/local_sandbox.hpp"
#include "sandbox-local/probe.hpp"

namespace {

using namespace stockade;

// Before each call, in which the loop turns as a host's does, so that it is not charged with what
// the one before it leaves: a runner that goes after its result was told.
constexpr std::chrono::milliseconds kPause{2};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench-latency: %s\n", what.c_str());
  std::exit(1);
}

// The floor: no loop, no framework, nothing but the kernel.
void plain(const std::vector<std::string>& words) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) fail("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ) != 0)
    fail("cannot spawn " + words[0]);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(err[1]);
  char byte;
  while (read(out[0], &byte, 1) > 0) {
  }
  while (read(err[0], &byte, 1) > 0) {
  }
  close(out[0]);
  close(err[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) fail(words[0] + " failed");
}

// bubblewrap as our backend runs it, without our last step inside.
std::vector<std::string> raw_bwrap(const BackendHost& host, const std::string& workspace,
                                   ConfinedSandboxMode mode, const std::string& tmp) {
  ConfineRequest request{{"bash", "-c", "true"}, {mode, workspace}, workspace, "", ""};
  if (mode == ConfinedSandboxMode::workspace_write) request.tmp = tmp;
  auto argv = confine_bwrap(host, request).argv;
  auto begin = std::find(argv.begin(), argv.end(), host.launcher);
  argv.erase(begin, std::find(begin, argv.end(), "--") + 1);
  return argv;
}

std::vector<std::string> peer_command(const std::string& peer, const std::string& workspace) {
  constexpr std::string_view kWorkspace = "{workspace}";
  std::istringstream in(peer.substr(std::min(peer.find('='), peer.size() - 1) + 1));
  std::vector<std::string> words;
  for (std::string word; in >> word; words.push_back(word))
    if (auto at = word.find(kWorkspace); at != std::string::npos)
      word.replace(at, kWorkspace.size(), workspace);
  if (words.empty()) fail("--peer needs NAME=WORDS, not \"" + peer + "\"");
  words.insert(words.end(), {"bash", "-c", "true"});
  return words;
}

template <class T>
Task<> keep(Task<T> task, std::optional<T>& out) {
  T value = co_await task;
  out.emplace(std::move(value));
}

template <class T>
T run(Loop& loop, Task<T> task) {
  std::optional<T> out;
  TaskScope scope(loop, [](std::exception_ptr error) { fail(describe(error)); });
  scope.start(keep(std::move(task), out));
  loop.run_until([&] { return out.has_value(); });
  return std::move(*out);
}

Task<bool> pause(Loop& loop) {
  auto sleeping = sleep(loop, kPause);
  co_await sleeping;
  co_return true;
}

struct Contestant {
  std::string name;
  std::function<void()> call;
  std::vector<double> micros;

  double median() {
    std::nth_element(micros.begin(), micros.begin() + static_cast<long>(micros.size() / 2),
                     micros.end());
    return micros[micros.size() / 2];
  }
};

}  // namespace

namespace {

// In a mount namespace of this thread's own, where its children are started.
void add_mounts(const std::string& directory, int count) {
  if (unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    fail("no mount namespace");
  for (int i = 0; i < count; ++i) {
    std::string place = directory + "/" + std::to_string(i);
    mkdir(place.c_str(), 0700);
    if (mount("tmpfs", place.c_str(), "tmpfs", 0, "size=64k") != 0) fail("cannot mount " + place);
  }
}

void measure(Loop& loop, std::vector<Contestant>& contestants, int rounds,
             const std::string& title) {
  for (auto& contestant : contestants) contestant.micros.clear();
  for (int warm_up = 0; warm_up < 5; ++warm_up)
    for (auto& contestant : contestants) contestant.call();
  for (int round = 0; round < rounds; ++round)
    for (auto& contestant : contestants) {
      run(loop, pause(loop));
      auto begin = std::chrono::steady_clock::now();
      contestant.call();
      contestant.micros.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
              .count());
    }
  double floor = contestants.front().median();
  std::printf("\n%-45s %10s %8s    (%d rounds, interleaved)\n", title.c_str(), "median us", "ratio",
              rounds);
  for (auto& contestant : contestants)
    std::printf("%-45s %10.0f %8.2f\n", contestant.name.c_str(), contestant.median(),
                contestant.median() / floor);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The cost of one confined call, as a ratio to a plain one.", "bench-latency");
  int rounds = 200;
  int mounts = 200;
  app.add_option("--rounds", rounds, "how often each contestant runs")
      ->check(CLI::Range(1, 100000));
  app.add_option("--mounts", mounts, "as root, a second table with as many more mounts; 0: none")
      ->check(CLI::Range(0, 10000));
  std::vector<std::string> peers;
  app.add_option("--peer", peers,
                 "NAME=WORDS: another sandbox beside them, by the words before `bash -c true`, "
                 "separated by blanks; {workspace} stands for the workspace");
  std::string only;
  app.add_option("--only", only, "beside the plain call, those alone whose name holds this");
  CLI11_PARSE(app, argc, argv);

  char pattern[] = "/var/tmp/stockade-bench-XXXXXX";
  if (!mkdtemp(pattern)) fail("cannot create a workspace in /var/tmp");
  const std::string scratch = pattern;
  const std::string workspace = scratch + "/workspace";
  mkdir(workspace.c_str(), 0700);
  mkdir((scratch + "/tmp").c_str(), 0700);

  Loop loop;
  Log log = Log::standard_error(LogLevel::warn);
  const BackendHost host = inspect_host();
  auto policies = std::make_shared<SandboxPolicyService>(
      SandboxPolicyConfig{SandboxMode::read_only, workspace});
  std::vector<std::shared_ptr<BashExecutor>> executors;
  std::vector<Contestant> contestants;
  contestants.push_back({"bash -c true, posix_spawn with pipes",
                         [] {
                           plain({"bash", "-c", "true"});
                         },
                         {}});

  auto add = [&](const std::string& name, std::shared_ptr<BashExecutor> executor,
                 SandboxMode mode) {
    auto call = [&loop, executor, mode, name, workspace] {
      BashRequest request;
      request.command = "true";
      request.policy = SandboxExecutionPolicy{mode, workspace, std::nullopt};
      BashResult result =
          run(loop, executor->run(executor->resolve(request), AbortSignal(), nullptr));
      if (result.outcome != BashOutcome::ok)
        fail(name +
             " did not run: " + (result.error ? result.error->message : to_string(result.outcome)));
    };
    contestants.push_back({name + ", " + to_string(mode), call, {}});
  };
  for (Backend backend : {Backend::namespace_, Backend::landlock, Backend::bwrap}) {
    auto probing = probe_backend(loop, backend, host, std::chrono::seconds(5));
    ProbeVerdict verdict = run(loop, std::move(probing));
    if (!verdict.usable) {
      std::printf("%s is not usable here: %s\n", enum_name(backend).c_str(),
                  verdict.reason.c_str());
      continue;
    }
    SandboxLocalConfig config;
    config.backends = {backend};
    std::shared_ptr<LocalSandbox> sandbox = run(loop, LocalSandbox::open(loop, config, host, log));
    BashSandboxConfig settings;
    settings.cwd = workspace;
    auto executor =
        std::make_shared<BashExecutor>(loop, settings, policies, [sandbox] { return sandbox; });
    if (executors.empty()) add("stockade, no sandbox", executor, SandboxMode::danger_full_access);
    executors.push_back(executor);
    for (auto mode : {ConfinedSandboxMode::read_only, ConfinedSandboxMode::workspace_write}) {
      if (backend == Backend::bwrap) {
        auto words = raw_bwrap(host, workspace, mode, scratch + "/tmp");
        contestants.push_back(
            {"bwrap with the flags of the next, posix_spawn", [words] { plain(words); }, {}});
      }
      add("stockade, " + enum_name(backend), executor,
          mode == ConfinedSandboxMode::read_only ? SandboxMode::read_only
                                                 : SandboxMode::workspace_write);
    }
  }

  if (!only.empty())
    std::erase_if(contestants, [&](const Contestant& one) {
      return &one != contestants.data() && one.name.find(only) == std::string::npos;
    });
  for (const std::string& peer : peers) {
    auto words = peer_command(peer, workspace);
    contestants.push_back({peer.substr(0, peer.find('=')), [words] { plain(words); }, {}});
  }

  measure(loop, contestants, rounds, "one `true`");
  if (mounts > 0 && geteuid() == 0) {
    add_mounts(scratch, mounts);
    measure(loop, contestants, std::max(1, rounds / 4),
            "one `true`, " + std::to_string(mounts) + " more mounts");
    for (int i = 0; i < mounts; ++i)
      umount2((scratch + "/" + std::to_string(i)).c_str(), MNT_DETACH);
  }
  contestants.clear();
  executors.clear();
  std::error_code ignored;
  std::filesystem::remove_all(scratch, ignored);
  return 0;
}
