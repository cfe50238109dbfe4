// SPDX-License-Identifier: MIT
// What one confined `true` costs, beside `bash -c true` spawned plainly with pipes. Every round
// runs each contestant once, in turn, so that the machine's load weighs on all alike; the ratio of
// medians is the result, the microseconds are only context.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "bash-sandbox/executor.hpp"
#include "framework/error.hpp"
#include "framework/fields.hpp"
#include "sandbox-local/local_sandbox.hpp"
#include "sandbox-local/probe.hpp"

namespace {

using namespace stockade;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench-latency: %s\n", what.c_str());
  std::exit(1);
}

// The floor: no loop, no framework, nothing but the kernel.
void plain_bash() {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) fail("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  const char* argv[] = {"bash", "-c", "true", nullptr};
  pid_t pid = 0;
  if (posix_spawnp(&pid, "bash", &actions, nullptr, const_cast<char**>(argv), environ) != 0)
    fail("cannot spawn bash");
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
  if (status != 0) fail("bash -c true failed");
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

int main(int argc, char** argv) {
  CLI::App app("The cost of one confined call, as a ratio to a plain one.", "bench-latency");
  int rounds = 200;
  app.add_option("--rounds", rounds, "how often each contestant runs")
      ->check(CLI::Range(1, 100000));
  CLI11_PARSE(app, argc, argv);

  char workspace[] = "/var/tmp/stockade-bench-XXXXXX";
  if (!mkdtemp(workspace)) fail("cannot create a workspace in /var/tmp");

  Loop loop;
  Log log = Log::standard_error(LogLevel::warn);
  auto policies = std::make_shared<SandboxPolicyService>(
      SandboxPolicyConfig{SandboxMode::read_only, workspace});
  std::vector<std::shared_ptr<BashExecutor>> executors;
  std::vector<Contestant> contestants;
  contestants.push_back({"bash -c true, posix_spawn with pipes", plain_bash, {}});

  auto add = [&](const std::string& name, std::shared_ptr<BashExecutor> executor,
                 SandboxMode mode) {
    auto call = [&loop, executor, mode, name, root = std::string(workspace)] {
      BashRequest request;
      request.command = "true";
      request.policy = SandboxExecutionPolicy{mode, root, std::nullopt};
      BashResult result =
          run(loop, executor->run(executor->resolve(request), AbortSignal(), nullptr));
      if (result.outcome != BashOutcome::ok)
        fail(name +
             " did not run: " + (result.error ? result.error->message : to_string(result.outcome)));
    };
    contestants.push_back({name + ", " + to_string(mode), call, {}});
  };
  for (Backend backend : {Backend::landlock, Backend::bwrap}) {
    auto probing = probe_backend(loop, backend, inspect_host(), std::chrono::seconds(5));
    ProbeVerdict verdict = run(loop, std::move(probing));
    if (!verdict.usable) {
      std::printf("%s is not usable here: %s\n", enum_name(backend).c_str(),
                  verdict.reason.c_str());
      continue;
    }
    SandboxLocalConfig config;
    config.backends = {backend};
    std::shared_ptr<LocalSandbox> sandbox =
        run(loop, LocalSandbox::open(loop, config, inspect_host(), log));
    BashSandboxConfig settings;
    settings.cwd = workspace;
    auto executor =
        std::make_shared<BashExecutor>(loop, settings, policies, [sandbox] { return sandbox; });
    if (executors.empty()) add("stockade, no sandbox", executor, SandboxMode::danger_full_access);
    executors.push_back(executor);
    add("stockade, " + enum_name(backend), executor, SandboxMode::read_only);
    add("stockade, " + enum_name(backend), executor, SandboxMode::workspace_write);
  }

  for (int warm_up = 0; warm_up < 5; ++warm_up)
    for (auto& contestant : contestants) contestant.call();
  for (int round = 0; round < rounds; ++round)
    for (auto& contestant : contestants) {
      auto begin = std::chrono::steady_clock::now();
      contestant.call();
      contestant.micros.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
              .count());
    }

  double floor = contestants.front().median();
  std::printf("\n%-45s %10s %8s    (%d rounds, interleaved)\n", "one `true`", "median us", "ratio",
              rounds);
  for (auto& contestant : contestants)
    std::printf("%-45s %10.0f %8.2f\n", contestant.name.c_str(), contestant.median(),
                contestant.median() / floor);
  rmdir(workspace);
  return 0;
}
