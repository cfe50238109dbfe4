// SPDX-License-Identifier: MIT
// What starting a process costs the loop: by how much memory the host has resident, and while many
// calls run at once. Exits with 1 when a promise is not kept.
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "bash-sandbox/executor.hpp"
#include "framework/error.hpp"
#include "framework/process.hpp"

namespace {

using namespace stockade;
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench-spawn: %s\n", what.c_str());
  std::exit(1);
}

double micros(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

struct Samples {
  std::vector<double> values;
  double at(double quantile) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    auto index = static_cast<std::size_t>(quantile * static_cast<double>(values.size() - 1));
    return values[index];
  }
};

struct Ignore : ProcessObserver {
  void on_data(Stream, std::span<const char>) override {}
  void on_end(Stream) override { ++ends; }
  void on_exit(ExitStatus) override { exited = true; }
  void on_failed(SpawnError error) override { fail(error.message()); }
  int ends = 0;
  bool exited = false;
};

// How long spawn() itself takes, in microseconds: the loop stands still for that long.
void spawn_once(Loop& loop, Samples& samples) {
  SpawnRequest request;
  request.argv = {"/bin/true"};
  request.working_directory = "/";
  Ignore observer;
  const auto begin = Clock::now();
  auto spawned = Process::spawn(loop, request, observer);
  samples.values.push_back(micros(Clock::now() - begin));
  if (auto* error = std::get_if<SpawnError>(&spawned)) fail(error->message());
  loop.run_until([&] { return observer.exited && observer.ends == 2; });
}

// Memory that counts, in pages of 4 KiB: page tables are what fork copies.
class Resident {
 public:
  explicit Resident(std::size_t bytes) : bytes_(bytes) {
    if (bytes_ == 0) return;
    memory_ = static_cast<char*>(
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED) fail("cannot map memory");
    madvise(memory_, bytes_, MADV_NOHUGEPAGE);
    for (std::size_t at = 0; at < bytes_; at += 4096) memory_[at] = 1;
  }
  ~Resident() {
    if (memory_) munmap(memory_, bytes_);
  }
  Resident(const Resident&) = delete;
  Resident& operator=(const Resident&) = delete;

 private:
  std::size_t bytes_;
  char* memory_ = nullptr;
};

struct Usage {
  double cpu_micros;
  long waits;  // how often the thread gave the processor away by itself: it waited for something
};

Usage usage() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return {static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3,
          used.ru_nvcsw};
}

// How long each turn of the loop kept it from looking at its descriptors: by the processor time of
// the loop's own thread, and by the clock in the turns in which the thread waited for something. In
// all others a difference is what the machine gave to others, calls included.
class TurnProbe {
 public:
  explicit TurnProbe(Loop& loop) : loop_(loop) {
    uv_check_init(loop.uv(), &check_);
    uv_prepare_init(loop.uv(), &prepare_);
    check_.data = prepare_.data = this;
    uv_check_start(&check_, [](uv_check_t* handle) {
      auto& self = *static_cast<TurnProbe*>(handle->data);
      self.begin_ = Clock::now();
      self.before_ = usage();
    });
    uv_prepare_start(&prepare_, [](uv_prepare_t* handle) {
      auto& self = *static_cast<TurnProbe*>(handle->data);
      if (self.begin_ == Clock::time_point{}) return;
      const Usage after = usage();
      const double taken = micros(Clock::now() - self.begin_);
      self.wall.values.push_back(taken);
      self.cpu.values.push_back(after.cpu_micros - self.before_.cpu_micros);
      if (after.waits > self.before_.waits) self.waiting.values.push_back(taken);
    });
    uv_unref(reinterpret_cast<uv_handle_t*>(&check_));
    uv_unref(reinterpret_cast<uv_handle_t*>(&prepare_));
  }
  ~TurnProbe() {
    uv_close(reinterpret_cast<uv_handle_t*>(&check_), nullptr);
    uv_close(reinterpret_cast<uv_handle_t*>(&prepare_), nullptr);
    loop_.drain();
  }
  TurnProbe(const TurnProbe&) = delete;
  TurnProbe& operator=(const TurnProbe&) = delete;
  Samples wall;
  Samples cpu;
  Samples waiting;

 private:
  Loop& loop_;
  uv_check_t check_{};
  uv_prepare_t prepare_{};
  Clock::time_point begin_{};
  Usage before_{};
};

Task<> count(Task<BashResult> running, int& done) {
  BashResult result = co_await running;
  if (result.outcome != BashOutcome::ok)
    fail("a call did not run: " +
         (result.error ? result.error->message : to_string(result.outcome)));
  ++done;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What starting a process costs the loop.", "bench-spawn");
  int rounds = 200;
  int gibibytes = 4;
  int calls = 64;
  int batches = 10;
  app.add_option("--rounds", rounds, "spawns for each size")->check(CLI::Range(10, 100000));
  app.add_option("--resident", gibibytes, "the larger size, in GiB")->check(CLI::Range(1, 64));
  app.add_option("--calls", calls, "calls at once")->check(CLI::Range(1, 1000));
  app.add_option("--batches", batches, "how often so many")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);

  bool kept = true;
  Loop loop;
  Samples small;
  Samples large;
  Samples warm_up;
  for (int i = 0; i < 20; ++i) spawn_once(loop, warm_up);
  // In turns, so that the machine's load weighs on both.
  for (int part = 0; part < 5; ++part) {
    for (int i = 0; i < rounds / 5; ++i) spawn_once(loop, small);
    Resident memory(static_cast<std::size_t>(gibibytes) << 30);
    for (int i = 0; i < 5; ++i) spawn_once(loop, warm_up);
    for (int i = 0; i < rounds / 5; ++i) spawn_once(loop, large);
  }
  const double ratio = large.at(0.5) / small.at(0.5);
  std::printf("%-44s %10s %10s %10s\n", "spawn(), microseconds", "median", "p95", "max");
  std::printf("%-44s %10.0f %10.0f %10.0f\n", "with little memory resident", small.at(0.5),
              small.at(0.95), small.at(1));
  std::printf("with %2d GiB resident %-23s %10.0f %10.0f %10.0f\n", gibibytes, "", large.at(0.5),
              large.at(0.95), large.at(1));
  std::printf("ratio of medians: %.2f (promised: at most 1.20)\n\n", ratio);
  kept &= ratio <= 1.2;

  auto policies = std::make_shared<SandboxPolicyService>(SandboxPolicyConfig{});
  BashSandboxConfig config;
  config.cwd = "/";
  config.max_calls = calls;
  auto executor = std::make_shared<BashExecutor>(loop, config, policies,
                                                 [] { return std::shared_ptr<SandboxProvider>(); });
  BashRequest request;
  request.command = "for i in 1 2 3; do echo $i; sleep 0.1; done";
  request.policy = SandboxExecutionPolicy{SandboxMode::danger_full_access, "/", std::nullopt};
  TurnProbe probe(loop);
  for (int batch = 0; batch < batches; ++batch) {
    int done = 0;
    TaskScope scope(loop, [](std::exception_ptr error) { fail(describe(error)); });
    for (int i = 0; i < calls; ++i)
      scope.start(count(executor->run(executor->resolve(request), AbortSignal(), nullptr), done));
    loop.run_until([&] { return done == calls; });
  }
  std::printf("%-44s %10s %10s %10s\n", "a turn of the loop, microseconds", "median", "p99", "max");
  auto row = [](const char* name, Samples& samples) {
    std::printf("%-44s %10.0f %10.0f %10.0f\n", name, samples.at(0.5), samples.at(0.99),
                samples.at(1));
  };
  row("by its own processor time", probe.cpu);
  row("by the clock, where it waited for anything", probe.waiting);
  row("by the clock, the machine's load included", probe.wall);
  std::printf(
      "%d calls at once, %d times: it waited in %zu of %zu turns (promised: at most 2000 "
      "microseconds)\n",
      calls, batches, probe.waiting.values.size(), probe.wall.values.size());
  kept &= probe.cpu.at(1) <= 2000 && probe.waiting.at(1) <= 2000;
  std::puts(kept ? "kept" : "NOT KEPT");
  return kept ? 0 : 1;
}
