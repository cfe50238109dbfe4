// SPDX-License-Identifier: MIT
// Many calls, one after the other and side by side: descriptors, memory and processes stay what
// they were, and no result is lost or doubled. Exits with 1 when that is not so.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
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
  std::fprintf(stderr, "bench-soak: %s\n", what.c_str());
  std::exit(1);
}

long resident() {
  std::ifstream in("/proc/self/statm");
  long pages = 0;
  in >> pages >> pages;
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

long descriptors() {
  return static_cast<long>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                         std::filesystem::directory_iterator{}));
}

// The kernel lists them by the thread that forked, and libuv's threads do.
long children() {
  long count = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream in(thread.path() / "children");
    count +=
        std::distance(std::istream_iterator<std::string>(in), std::istream_iterator<std::string>());
  }
  return count;
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

struct Soak {
  std::shared_ptr<BashExecutor> shell;
  std::string workspace;
  bool confined = false;
  long calls = 0;
  long next = 0;
  std::vector<bool> seen{};
  long done = 0;
};

// Each worker makes one call after the other. Some calls are loud, some fail, some are ended, some
// leave a process behind.
Task<> work(Soak& soak) {
  while (soak.next < soak.calls) {
    const long number = soak.next++;
    const std::string text = std::to_string(number);
    BashRequest request;
    request.command = "echo " + text;
    if (number % 50 == 7) request.command += "; seq 1 20000; echo " + text;
    if (number % 50 == 13) request.command += "; exit 3";
    if (number % 50 == 21) request.command += "; (setsid sleep 600 >/dev/null 2>&1 &)";
    if (number % 50 == 34) {
      request.command += "; sleep 600";
      request.timeout_ms = 50;
    }
    const bool confined = soak.confined && number % 4 == 0;
    request.policy =
        SandboxExecutionPolicy{confined ? SandboxMode::read_only : SandboxMode::danger_full_access,
                               soak.workspace, std::to_string(number % 5)};
    BashSpec spec = soak.shell->resolve(request);
    auto running = soak.shell->run(std::move(spec), AbortSignal(), nullptr);
    BashResult result = co_await running;
    const bool timed = number % 50 == 34;
    if (result.error) fail("call " + text + ": " + result.error->message);
    if (result.timed_out != timed) fail("call " + text + " ended in another way");
    if (!timed && result.exit_code != (number % 50 == 13 ? 3 : 0))
      fail("call " + text + " has another exit code");
    // A call that is ended at once may not have come to its echo.
    if (!(timed && result.out.bytes.empty()) && !result.out.bytes.ends_with(text + "\n"))
      fail("call " + text + " has another call's output");
    if (soak.seen[static_cast<std::size_t>(number)]) fail("call " + text + " ended twice");
    soak.seen[static_cast<std::size_t>(number)] = true;
    ++soak.done;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Many calls, and what is left of them.", "bench-soak");
  long calls = 100000;
  int workers = 8;
  bool unconfined = false;
  app.add_option("--calls", calls, "in all")->check(CLI::Range(100L, 100000000L));
  app.add_option("--at-once", workers, "side by side")->check(CLI::Range(1, 1000));
  app.add_flag("--unconfined", unconfined, "none of them in a sandbox");
  CLI11_PARSE(app, argc, argv);

  char workspace[] = "/var/tmp/stockade-bench-XXXXXX";
  if (!mkdtemp(workspace)) fail("cannot create a workspace in /var/tmp");
  Loop loop;
  Log log = Log::standard_error(LogLevel::warn);
  auto policies = std::make_shared<SandboxPolicyService>(
      SandboxPolicyConfig{SandboxMode::read_only, workspace});
  std::shared_ptr<LocalSandbox> sandbox;
  if (!unconfined) sandbox = run(loop, LocalSandbox::open(loop, {}, inspect_host(), log));
  BashSandboxConfig config;
  config.cwd = workspace;
  config.max_spill_total_bytes = 64 << 20;
  bool kept = true;
  {
    Soak soak{std::make_shared<BashExecutor>(loop, config, policies, [&] { return sandbox; }),
              workspace, !unconfined, calls};
    soak.seen.resize(static_cast<std::size_t>(calls));
    std::printf("%10s %12s %12s %10s %8s\n", "calls", "descriptors", "resident KiB", "children",
                "seconds");
    const auto begin = std::chrono::steady_clock::now();
    const long step = std::max(calls / 10, 1L);
    // The first tenth is what the rest is measured by.
    long first_descriptors = 0;
    long first_resident = 0;
    for (int part = 1; part <= 10; ++part) {
      const long until = part == 10 ? calls : step * part;
      Soak piece = soak;
      piece.calls = until;
      int idle = 0;
      auto worker = [](Soak& of, int& count) -> Task<> {
        auto working = work(of);
        co_await working;
        ++count;
      };
      {
        TaskScope scope(loop, [](std::exception_ptr error) { fail(describe(error)); });
        for (int i = 0; i < workers; ++i) scope.start(worker(piece, idle));
        loop.run_until([&] { return idle == workers; });
      }
      soak = piece;
      loop.drain();
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      std::printf("%10ld %12ld %12ld %10ld %8.1f\n", soak.done, descriptors(), resident(),
                  children(), seconds);
      std::fflush(stdout);
      if (part == 1) {
        first_descriptors = descriptors();
        first_resident = resident();
      }
      kept &= children() == 0;
    }
    const long lost = calls - soak.done;
    std::printf("%ld of %ld calls ended, %ld lost\n", soak.done, calls, lost);
    kept &= lost == 0 && descriptors() == first_descriptors && resident() <= first_resident + 2048;
  }
  loop.drain();
  rmdir(workspace);
  std::puts(kept ? "flat" : "NOT FLAT");
  return kept ? 0 : 1;
}
