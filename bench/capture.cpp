// SPDX-License-Identifier: MIT
// What taking in a loud command's output costs: memory, the rate beside a plain C reader of the
// same pipe, and what a quiet call beside it feels. Exits with 1 when a promise is not kept.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "bash-sandbox/executor.hpp"
#include "framework/error.hpp"

namespace {

using namespace stockade;
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench-capture: %s\n", what.c_str());
  std::exit(1);
}

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

// Of this process, in KiB; `VmHWM` is the most there ever was, since the last reset.
long memory(const char* field) {
  std::ifstream in("/proc/self/status");
  std::string word;
  while (in >> word)
    if (word == field) {
      long value = 0;
      in >> value;
      return value;
    }
  return 0;
}

void reset_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

// A reader that keeps nothing: the floor.
double plain_reader(const std::string& command, std::uint64_t expected) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) fail("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  const char* argv[] = {"bash", "-c", command.c_str(), nullptr};
  pid_t pid = 0;
  const auto begin = Clock::now();
  if (posix_spawnp(&pid, "bash", &actions, nullptr, const_cast<char**>(argv), environ) != 0)
    fail("cannot spawn bash");
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  static char chunk[65536];
  std::uint64_t total = 0;
  for (ssize_t n; (n = read(out[0], chunk, sizeof chunk)) > 0;)
    total += static_cast<std::uint64_t>(n);
  close(out[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (total != expected) fail("the plain reader lost bytes");
  return seconds(Clock::now() - begin);
}

template <class T>
Task<> keep(Task<T> task, std::optional<T>& out) {
  T value = co_await task;
  out.emplace(std::move(value));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What taking in a loud command's output costs.", "bench-capture");
  int mebibytes = 1024;
  int rounds = 3;
  app.add_option("--size", mebibytes, "of the output, in MiB")->check(CLI::Range(64, 65536));
  app.add_option("--rounds", rounds, "how often each reads it")->check(CLI::Range(1, 100));
  CLI11_PARSE(app, argc, argv);
  const std::uint64_t bytes = static_cast<std::uint64_t>(mebibytes) << 20;
  const std::string loud =
      "yes 0123456789abcdef0123456789abcdef0123456789abcdef 2>/dev/null | head -c " +
      std::to_string(bytes);

  Loop loop;
  auto policies = std::make_shared<SandboxPolicyService>(SandboxPolicyConfig{});
  BashSandboxConfig config;
  config.cwd = "/";
  auto executor = std::make_shared<BashExecutor>(loop, config, policies,
                                                 [] { return std::shared_ptr<SandboxProvider>(); });
  auto start = [&](const std::string& command, std::optional<BashResult>& out, TaskScope& scope) {
    BashRequest request;
    request.command = command;
    request.policy = SandboxExecutionPolicy{SandboxMode::danger_full_access, "/", std::nullopt};
    scope.start(keep(executor->run(executor->resolve(request), AbortSignal(), nullptr), out));
  };
  auto run = [&](const std::string& command) {
    std::optional<BashResult> result;
    TaskScope scope(loop, [](std::exception_ptr error) { fail(describe(error)); });
    start(command, result, scope);
    loop.run_until([&] { return result.has_value(); });
    if (result->outcome != BashOutcome::ok) fail("the command failed");
    return std::move(*result);
  };
  auto timed = [&](const std::string& command) {
    const auto begin = Clock::now();
    run(command);
    return seconds(Clock::now() - begin);
  };

  for (int i = 0; i < 5; ++i) run("echo warm-up; seq 1 100000");
  bool kept = true;

  // Interleaved, so that the machine's load weighs on both.
  std::vector<double> plain;
  std::vector<double> captured;
  long growth = 0;
  for (int round = 0; round < rounds; ++round) {
    plain.push_back(plain_reader(loud, bytes));
    const long before = memory("VmRSS:");
    reset_peak();
    const auto begin = Clock::now();
    BashResult result = run(loud);
    captured.push_back(seconds(Clock::now() - begin));
    growth = std::max(growth, memory("VmHWM:") - before);
    if (result.out.total != bytes) fail("bytes were lost");
    if (result.out.spill_path) unlink(result.out.spill_path->c_str());
  }
  const double ratio = median(plain) / median(captured);
  const long cap = (config.max_output_bytes + 1023) / 1024;
  std::printf("%d MiB: plain reader %.2f s, captured %.2f s\n", mebibytes, median(plain),
              median(captured));
  std::printf("rate, as a ratio to the plain reader: %.2f (promised: at least 0.70)\n", ratio);
  std::printf("resident memory grew by %ld KiB (promised: at most the cap, %ld, and 4096)\n\n",
              growth, cap);
  kept &= ratio >= 0.7 && growth <= cap + 4096;

  std::vector<double> alone;
  std::vector<double> beside;
  for (int i = 0; i < 30; ++i) alone.push_back(timed("echo hi"));
  {
    std::optional<BashResult> flood;
    TaskScope scope(loop, [](std::exception_ptr error) { fail(describe(error)); });
    start("yes", flood, scope);
    const auto until = Clock::now() + std::chrono::milliseconds(300);
    while (Clock::now() < until) timed("echo hi");
    for (int i = 0; i < 30; ++i) beside.push_back(timed("echo hi"));
  }
  // The same with the machine's two loud processes and no capture of ours, for what the load alone
  // does.
  std::printf(
      "a quiet call: %.2f ms alone, %.2f ms beside a flood, %.2f times (promised: below 2)\n",
      median(alone) * 1e3, median(beside) * 1e3, median(beside) / median(alone));
  kept &= median(beside) < 2 * median(alone);
  std::puts(kept ? "kept" : "NOT KEPT");
  return kept ? 0 : 1;
}
