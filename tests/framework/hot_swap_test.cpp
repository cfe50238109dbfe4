// SPDX-License-Identifier: MIT
// Libraries that are rebuilt, replaced and reloaded while calls are in flight.
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "framework/library.hpp"
#include "framework/loader.hpp"
#include "tests/framework/harness.hpp"
#include "tests/framework/objects.hpp"
#include "tests/framework/objects/greeter.hpp"
#include "tests/support/catch.hpp"

#if defined(__SANITIZE_ADDRESS__)
// Of <sanitizer/allocator_interface.h>, which g++ does not bring.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();  // NOLINT
#endif

namespace stockade::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

struct Bed : Tree {
  Bed() {
    install("test-version-1", "versioned");
    install("test-versioned-user", "user");
  }
  // In place, which would change the code of a host that maps the file itself.
  void install(const std::string& object, const std::string& as) {
    std::filesystem::copy_file(object_file(object), directory / (as + ".so"),
                               std::filesystem::copy_options::overwrite_existing);
  }
  void apply(const json& plugins) {
    run(loop, loader.apply(read_config<LoaderConfig>(json{{"plugins", plugins}}, "test"), "test"));
  }
  SwapReport swap(Task<SwapReport> task) {
    SwapReport report;
    auto store = [](Task<SwapReport> inner, SwapReport* out) -> Task<> { *out = co_await inner; };
    run(loop, store(std::move(task), &report));
    return report;
  }
  int version(std::string_view key = Versioned::service) {
    auto found = root.find_as<Versioned>(key);
    return found ? found->version() : 0;
  }

  Scratch directory;
  Loader loader{root, directory.path()};
};

const json kChain = json::parse(R"([{"plugin": "versioned"}, {"plugin": "user"}])");

TEST_CASE("hot swap: a rebuilt library is what runs after a reload") {
  Bed bed;
  bed.apply(kChain);
  CHECK(bed.version(kOuterVersioned) == 1);
  bed.install("test-version-2", "versioned");
  CHECK(bed.version() == 1);  // overwritten in place, and harmless
  auto report = bed.swap(bed.loader.reload("versioned"));
  INFO(report.library);
  CHECK(report.unmapped);
  CHECK_THAT(report.library, ContainsSubstring("versioned.so is unmapped"));
  CHECK(bed.version() == 2);
  CHECK(bed.version(kOuterVersioned) == 2);
  CHECK(bed.loader.fibers().size() == 2);
  CHECK(bed.loader.fiber("versioned")->effects().front() == "note none after 0");
}

TEST_CASE("hot swap: another plugin takes the place of a running one") {
  Bed bed;
  bed.apply(kChain);
  auto report = bed.swap(
      bed.loader.replace("versioned", object_file("test-version-2"), json{{"note", "new"}}));
  CHECK(report.unmapped);
  CHECK(bed.version(kOuterVersioned) == 2);
  CHECK(bed.loader.config().plugins[0].plugin == object_file("test-version-2"));
  CHECK(bed.loader.fiber("versioned")->effects().front() == "note new after 0");
}

TEST_CASE("hot swap: a library that is still used is reported and goes with its last user") {
  Bed bed;
  bed.apply(kChain);
  auto held = bed.root.find<Versioned>();
  auto report = bed.swap(bed.loader.reload("versioned"));
  CHECK_FALSE(report.unmapped);
  CHECK_THAT(report.library,
             ContainsSubstring("is still mapped") && ContainsSubstring("references"));
  CHECK(count_of(read_file("/proc/self/maps"), "/versioned.so") > 0);
  const auto copies = [] {
    std::set<std::string> inodes;
    std::ifstream maps("/proc/self/maps");
    std::string line, range, access, offset, device, inode;
    while (std::getline(maps, line)) {
      if (line.find("/versioned.so") == std::string::npos) continue;
      std::istringstream(line) >> range >> access >> offset >> device >> inode;
      inodes.insert(inode);
    }
    return inodes.size();
  };
  CHECK(copies() == 2);
  CHECK(held->version() == 1);
  held.reset();
  bed.loop.drain();
  CHECK(copies() == 1);
}

TEST_CASE("hot swap: a library that cannot be unmapped is reported with the cause") {
  Bed bed;
  bed.install("test-version-pinned", "versioned");
  bed.apply(kChain);
  bed.install("test-version-2", "versioned");
  auto report = bed.swap(bed.loader.reload("versioned"));
  CHECK_FALSE(report.unmapped);
  CHECK_THAT(report.library, ContainsSubstring("thread_local"));
  CHECK(bed.version(kOuterVersioned) == 2);  // and yet the new code runs
}

TEST_CASE("hot swap: a provider that throws while it loads leaves the old one serving") {
  Bed bed;
  bed.apply(kChain);
  auto before = bed.loader.fibers();
  bed.install("test-version-throws", "versioned");
  auto failure = failure_of([&] { bed.swap(bed.loader.reload("versioned")); });
  CHECK(failure.code == "NOT_TODAY");
  CHECK(failure.text ==
        "failed to apply loader entry versioned (test-versioned): this build does not load");
  CHECK(bed.loader.fibers() == before);
  for (const auto& fiber : before) CHECK(fiber->state() == FiberState::active);
  CHECK(bed.version(kOuterVersioned) == 1);
  before.clear();  // which hold the code, too
  bed.install("test-version-2", "versioned");
  CHECK(bed.swap(bed.loader.reload("versioned")).unmapped);
  CHECK(bed.version(kOuterVersioned) == 2);
}

TEST_CASE("hot swap: so does a library that cannot be opened") {
  Bed bed;
  bed.apply(kChain);
  write_file(bed.directory / "versioned.so", "no library");
  auto failure = failure_of([&] { bed.swap(bed.loader.reload("versioned")); });
  CHECK(failure.code == "PLUGIN_UNUSABLE");
  CHECK_THAT(failure.text, ContainsSubstring("failed to import loader entry versioned"));
  CHECK(bed.version(kOuterVersioned) == 1);
}

TEST_CASE("hot swap: an unknown row is refused") {
  Bed bed;
  bed.apply(kChain);
  auto failure = failure_of([&] { bed.swap(bed.loader.reload("zz")); });
  CHECK(failure.code == "ENTRY_UNKNOWN");
  CHECK(failure.text == "cannot resolve entry zz");
}

// Calls, one after the other, until told to stop.
struct Caller {
  int calls = 0;
  int lost = 0;     // nobody was there to call
  int strange = 0;  // not what the provider was when the call began
};

Task<> call_on(Context context, Loop* loop, Caller* caller, const bool* stop, int pace) {
  while (!*stop) {
    ++caller->calls;
    auto service = context.find_as<Versioned>(kOuterVersioned);
    if (!service) {
      ++caller->lost;
      auto pause = sleep(*loop, milliseconds(1));
      co_await pause;
      continue;
    }
    const int expected = service->version();
    auto call = service->call(loop, milliseconds(pace));
    const int answer = co_await call;
    if (answer != expected) ++caller->strange;
  }
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* dir = opendir("/proc/self/fd");
  while (readdir(dir)) ++count;
  closedir(dir);
  return count;
}

// Libraries, one per copy.
std::size_t mapped_copies() {
  std::set<std::string> inodes;
  std::ifstream maps("/proc/self/maps");
  std::string line, range, access, offset, device, inode;
  while (std::getline(maps, line)) {
    if (line.find("/memfd:") == std::string::npos) continue;
    std::istringstream(line) >> range >> access >> offset >> device >> inode;
    inodes.insert(inode);
  }
  return inodes.size();
}

// What is held: the live heap where a sanitizer counts it, since what is freed rests in its
// quarantine first; else what is resident.
std::size_t held_kilobytes() {
#if defined(__SANITIZE_ADDRESS__)
  return __sanitizer_get_current_allocated_bytes() / 1024;
#endif
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.starts_with("VmRSS:")) return std::strtoul(line.c_str() + 6, nullptr, 10);
  return 0;
}

// STOCKADE_SWAPS=1000 for the long run.
TEST_CASE("hot swap: many swaps under load lose no call and nothing grows") {
  const char* wanted = std::getenv("STOCKADE_SWAPS");
  const int swaps = wanted ? std::atoi(wanted) : 100;
  Bed bed;
  bed.apply(kChain);
  bool stop = false;
  std::vector<Caller> callers(100);
  TaskScope calls(bed.loop, [](std::exception_ptr error) { FAIL(describe(error)); });
  for (std::size_t i = 0; i < callers.size(); ++i)
    calls.start(call_on(bed.root, &bed.loop, &callers[i], &stop, 1 + static_cast<int>(i % 10)));

  std::size_t descriptors = 0;
  std::size_t libraries = 0;
  std::size_t memory = 0;
  const int settled = std::min(50, swaps / 2);
  int wrong = 0;
  for (int i = 0; i < swaps; ++i) {
    const int next = i % 2 == 0 ? 2 : 1;
    if (i % 10 == 5) {
      // One that fails, in between.
      bed.install("test-version-throws", "versioned");
      if (failure_of([&] { bed.swap(bed.loader.reload("versioned")); }).code != "NOT_TODAY")
        ++wrong;
    }
    bed.install("test-version-" + std::to_string(next), "versioned");
    bed.swap(bed.loader.reload("versioned"));
    if (bed.version(kOuterVersioned) != next) ++wrong;
    if (i == settled || i == swaps - 1) {
      // The calls that hold an old one are over by then.
      run_for(bed.loop, milliseconds(100));
      if (i == settled) {
        descriptors = open_descriptors();
        libraries = mapped_copies();
        memory = held_kilobytes();
      }
    }
  }
  CHECK(open_descriptors() <= descriptors);
  CHECK(mapped_copies() <= libraries);
  const std::size_t held = held_kilobytes();
  CHECK(held <= memory + 2048);  // a library that leaks is 100 kB and more, a fiber some kB a swap
  stop = true;
  run_until(bed.loop, [&] { return calls.size() == 0; });
  Caller all;
  for (const auto& caller : callers) {
    all.calls += caller.calls;
    all.lost += caller.lost;
    all.strange += caller.strange;
  }
  CHECK(wrong == 0);
  CHECK(all.calls > 100);
  CHECK(all.lost == 0);
  CHECK(all.strange == 0);
  std::fprintf(stderr,
               "%d swaps under %d calls: held %zu -> %zu kB, %zu libraries, %zu descriptors\n",
               swaps, all.calls, memory, held, mapped_copies(), open_descriptors());
}

TEST_CASE("hot swap: who asked may be unloaded by it") {
  Bed bed;
  bed.apply(kChain);
  bed.install("test-version-2", "versioned");
  {
    TaskScope scope(bed.loop, [](std::exception_ptr) {});
    auto ask = [](Loader* loader) -> Task<> {
      auto reloading = loader->reload("versioned");
      co_await reloading;
    };
    scope.start(ask(&bed.loader));
    run_until(bed.loop, [&] { return bed.root.fiber()->children().size() > 2; });
  }
  run_until(bed.loop, [&] { return bed.version(kOuterVersioned) == 2; });
  run(bed.loop, bed.loader.settled());
  CHECK(bed.loader.fibers().size() == 2);
}

}  // namespace
}  // namespace stockade::test
