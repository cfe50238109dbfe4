// SPDX-License-Identifier: MIT
// What the framework costs, each beside the plainest C++ that does the same, as ratios.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <cstdio>
#include <map>
#include <unordered_map>

#include "framework/error.hpp"
#include "framework/library.hpp"
#include "framework/loader.hpp"

namespace {

using namespace stockade;

struct Thing {
  static constexpr std::string_view service = "bench-thing/1";
  virtual ~Thing() = default;
  virtual int touch() { return ++count; }
  int count = 0;
};

struct Happened {
  static constexpr std::string_view event = "bench-happened/1";
  int value = 0;
};

struct Tree {
  void run(Task<> task) {
    std::exception_ptr error;
    TaskScope scope(loop, [&error](std::exception_ptr thrown) { error = thrown; });
    scope.start(std::move(task));
    loop.run_until([&] { return scope.size() == 0; });
    if (error) std::rethrow_exception(error);
  }
  void dispose() {
    Completion<> disposed = root.fiber()->dispose();
    loop.run_until([&] { return disposed.settled(); });
  }
  Loop loop;
  Context root = Context::root(loop, Log::standard_error(LogLevel::warn));
};

PluginDefinition definition(std::string name, std::vector<std::string> inject,
                            std::function<void(const Context&)> body) {
  PluginDefinition out;
  out.name = std::move(name);
  out.inject = std::move(inject);
  auto run = [](Context context, std::function<void(const Context&)> work) -> Task<> {
    work(context);
    co_return;
  };
  out.apply = [body = std::move(body), run](Context context, const nlohmann::json&) {
    return run(std::move(context), body);
  };
  return out;
}

// Among twenty services, as a plugin that declared it.
void get_service(benchmark::State& state) {
  Tree tree;
  for (int i = 0; i < 20; ++i)
    tree.root.provide_as<Thing>("other-" + std::to_string(i) + "/1", std::make_shared<Thing>());
  tree.root.provide<Thing>(std::make_shared<Thing>());
  auto fiber = tree.root.plugin(
      definition("user", {std::string(Thing::service)}, [](const Context&) {}), {});
  tree.run(fiber->settled());
  const Context context(fiber, fiber->scope());
  for (auto _ : state) benchmark::DoNotOptimize(context.get<Thing>()->touch());
  tree.dispose();
}
BENCHMARK(get_service)->Name("get/framework");

void get_plain(benchmark::State& state) {
  std::unordered_map<std::string, std::shared_ptr<Thing>> things;
  for (int i = 0; i < 20; ++i)
    things.emplace("other-" + std::to_string(i) + "/1", std::make_shared<Thing>());
  const std::string key(Thing::service);
  things.emplace(key, std::make_shared<Thing>());
  for (auto _ : state) {
    std::shared_ptr<Thing> found = things.find(key)->second;
    benchmark::DoNotOptimize(found->touch());
  }
}
BENCHMARK(get_plain)->Name("get/plain");

void emit_event(benchmark::State& state) {
  Tree tree;
  int sum = 0;
  for (std::int64_t i = 0; i < state.range(0); ++i)
    tree.root.on<Happened>([&sum](const Happened& happened) { sum += happened.value; });
  for (auto _ : state) tree.root.emit(Happened{1});
  benchmark::DoNotOptimize(sum);
  tree.dispose();
}
BENCHMARK(emit_event)->Name("emit/framework")->Arg(1)->Arg(10)->Arg(100);

void emit_plain(benchmark::State& state) {
  int sum = 0;
  std::vector<std::function<void(const Happened&)>> listeners;
  for (std::int64_t i = 0; i < state.range(0); ++i)
    listeners.emplace_back([&sum](const Happened& happened) { sum += happened.value; });
  const Happened happened{1};
  for (auto _ : state)
    for (const auto& listener : listeners) listener(happened);
  benchmark::DoNotOptimize(sum);
}
BENCHMARK(emit_plain)->Name("emit/plain")->Arg(1)->Arg(10)->Arg(100);

constexpr int kFibers = 10000;

void mount_fibers(benchmark::State& state) {
  for (auto _ : state) {
    Tree tree;
    const auto plugin = definition("p", {}, [](const Context&) {});
    for (int i = 0; i < kFibers; ++i) tree.root.plugin(plugin, {});
    tree.loop.drain();
    tree.dispose();
  }
}
BENCHMARK(mount_fibers)->Name("mount_and_dispose_10000/framework")->Unit(benchmark::kMillisecond);

// An object with a name and a function that is called once, in a list.
void mount_plain(benchmark::State& state) {
  struct Object {
    std::string name;
    std::function<void()> body;
  };
  int sum = 0;
  for (auto _ : state) {
    std::vector<std::unique_ptr<Object>> objects;
    for (int i = 0; i < kFibers; ++i)
      objects.push_back(std::make_unique<Object>(Object{"p", [&sum] { ++sum; }}));
    for (const auto& object : objects) object->body();
    while (!objects.empty()) objects.pop_back();
  }
  benchmark::DoNotOptimize(sum);
}
BENCHMARK(mount_plain)->Name("mount_and_dispose_10000/plain")->Unit(benchmark::kMillisecond);

std::string plugin_file() {
  return installation_directory() + "/plugins/sandbox.so";
}

// A real plugin, with nobody who uses it: open a copy, load it, put it in place, dispose the old
// one, unmap it and look into the maps.
void swap_plugin(benchmark::State& state) {
  Tree tree;
  Loader loader(tree.root, installation_directory() + "/plugins");
  LoaderConfig config;
  config.plugins.resize(1);
  config.plugins[0].plugin = "sandbox";
  tree.run(loader.apply(std::move(config), "bench"));
  auto reload = [](Loader* l) -> Task<> {
    auto reloading = l->reload("sandbox");
    SwapReport report = co_await reloading;
    if (!report.unmapped) throw Error("BENCH", report.library);
  };
  for (auto _ : state) tree.run(reload(&loader));
  tree.dispose();
}
BENCHMARK(swap_plugin)->Name("swap/framework")->Unit(benchmark::kMicrosecond);

void swap_plain(benchmark::State& state) {
  const std::string file = plugin_file();
  for (auto _ : state) {
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      state.SkipWithError(dlerror());
      return;
    }
    benchmark::DoNotOptimize(dlsym(library, "stockade_plugin"));
    dlclose(library);
  }
}
BENCHMARK(swap_plain)->Name("swap/plain")->Unit(benchmark::kMicrosecond);

class Ratios final : public benchmark::ConsoleReporter {
 public:
  Ratios() : ConsoleReporter(OO_None) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const auto& run : runs) times_[run.benchmark_name()] = run.GetAdjustedRealTime();
  }
  void print() const {
    std::printf("\n%-34s %s\n", "", "framework / plain");
    for (const auto& [name, time] : times_) {
      const auto at = name.find("/framework");
      if (at == std::string::npos) continue;
      const std::string rest = name.substr(at + 10);
      auto plain = times_.find(name.substr(0, at) + "/plain" + rest);
      if (plain != times_.end())
        std::printf("%-34s %.1f\n", (name.substr(0, at) + rest).c_str(), time / plain->second);
    }
  }

 private:
  std::map<std::string, double> times_;
};

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  Ratios ratios;
  benchmark::RunSpecifiedBenchmarks(&ratios);
  ratios.print();
  return 0;
}
