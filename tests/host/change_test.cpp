// SPDX-License-Identifier: MIT
// A running composition that changes: rebuilt plugins under load, and a config file that is edited.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "bash-sandbox/shell.hpp"
#include "framework/library.hpp"
#include "host/composition.hpp"
#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using namespace stockade::test;

namespace {

Task<> run_into(std::shared_ptr<Shell> shell, std::string command, std::optional<BashResult>* out) {
  BashRequest request;
  request.command = std::move(command);
  auto running = shell->run(shell->resolve(request), {}, nullptr);
  BashResult result = co_await running;
  *out = std::move(result);
}

std::size_t copies_of(const std::string& plugin) {
  std::set<std::string> inodes;
  std::ifstream maps("/proc/self/maps");
  std::string line, range, access, offset, device, inode;
  while (std::getline(maps, line)) {
    if (line.find("/" + plugin + ".so") == std::string::npos) continue;
    std::istringstream(line) >> range >> access >> offset >> device >> inode;
    inodes.insert(inode);
  }
  return inodes.size();
}

CompositionOptions quiet(const Scratch& scratch) {
  CompositionOptions options;
  options.log_level = LogLevel::off;
  options.backend = "landlock";  // alone, so that nothing is probed
  options.workspace = scratch.path();
  return options;
}

std::string backend_of(const std::optional<BashResult>& result) {
  return result && result->sandbox.backend ? *result->sandbox.backend : "none";
}

TEST_CASE("hot swap: the real plugins are replaced under a hundred calls and none is lost") {
  Scratch scratch;
  Host host(quiet(scratch));
  constexpr int kCalls = 100;
  std::vector<std::optional<BashResult>> before(kCalls);
  std::vector<std::optional<BashResult>> after(10);
  std::exception_ptr error;
  {
    TaskScope calls(host.loop(), [&](std::exception_ptr thrown) { error = thrown; });
    for (int i = 0; i < kCalls; ++i)
      calls.start(run_into(host.service<Shell>(), "sleep 0.5; echo " + std::to_string(i),
                           &before[static_cast<std::size_t>(i)]));
    REQUIRE(wait_until(host.loop(), [&] { return host.service<Shell>()->load().running > 0; }));

    // At no time is there nobody to call.
    bool gap = false;
    Timer look(host.loop());
    std::function<void()> again = [&] {
      gap = gap || !host.context().find<Shell>();
      look.start(std::chrono::milliseconds(1), again);
    };
    again();
    SwapReport sandbox = host.run(host.loader().reload("sandbox-local"));
    SwapReport shell = host.run(host.loader().reload("bash-sandbox"));
    CHECK_FALSE(shell.unmapped);
    CHECK_THAT(shell.library, ContainsSubstring("bash-sandbox.so is still mapped"));
    CHECK(copies_of("bash-sandbox") >= 2);
    // Calls that begin now are of another sandbox.
    auto edit = [](Loader* loader) -> Task<bool> {
      auto updating = loader->update(
          "sandbox-local", [](LoaderEntry& entry) { entry.config["backends"] = {"bwrap"}; });
      co_await updating;
      co_return true;
    };
    CHECK(host.run(edit(&host.loader())));
    for (auto& result : after) calls.start(run_into(host.service<Shell>(), "echo new", &result));
    look.stop();
    CHECK_FALSE(gap);
    REQUIRE(wait_until(host.loop(), [&] { return calls.size() == 0; }));
  }
  REQUIRE_FALSE(error);
  int lost = 0;
  int strange = 0;
  for (int i = 0; i < kCalls; ++i) {
    const auto& result = before[static_cast<std::size_t>(i)];
    if (!result || result->exit_code != 0 || result->out.bytes != std::to_string(i) + "\n") ++lost;
    if (backend_of(result) != "landlock") ++strange;
  }
  CHECK(lost == 0);
  CHECK(strange == 0);
  for (const auto& result : after) {
    CHECK(backend_of(result) == "bwrap");
    if (result) CHECK(result->out.bytes == "new\n");
  }
  CHECK(wait_until(host.loop(), [] {
    return copies_of("bash-sandbox") == 1 && copies_of("sandbox-local") == 1;
  }));
}

struct Watched {
  Watched() {
    write("read-only");
    CompositionOptions options;
    options.log_level = LogLevel::off;
    options.config_file = file;
    options.watch = true;
    host.emplace(options);
  }
  void write(const std::string& mode, const std::string& more = "") {
    write_file(file, R"({"plugins": [{"plugin": "sandbox", "config": {"mode": ")" + mode +
                         R"("}}, {"plugin": "sandbox-local", "config": {"backends": ["landlock"]}},
                         {"plugin": "bash-sandbox"})" +
                         more + "]}");
  }
  SandboxMode mode() { return host->service<Shell>()->sandbox_mode(); }

  Scratch scratch;
  std::string file = scratch / "config.json";
  std::optional<Host> host;
};

TEST_CASE("watch: an edited config file is applied while the host runs") {
  Watched w;
  CHECK(w.mode() == SandboxMode::read_only);
  auto shell = w.host->loader().fiber("bash-sandbox");
  w.write("workspace-write");
  CHECK(wait_until(w.host->loop(), [&] { return w.mode() == SandboxMode::workspace_write; }));
  CHECK(w.host->loader().fiber("bash-sandbox") != shell);
}

TEST_CASE("watch: a bad config file keeps the running one") {
  Watched w;
  auto fibers = w.host->loader().fibers();
  for (const auto& edit : std::vector<std::function<void()>>{
           [&] { write_file(w.file, "{"); }, [&] { w.write("yolo"); },
           [&] { w.write("workspace-write", R"(, {"plugin": "no-such-plugin"})"); }}) {
    edit();
    run_for(w.host->loop(), std::chrono::milliseconds(600));
    CHECK(w.mode() == SandboxMode::read_only);
    CHECK(w.host->loader().fibers() == fibers);
  }
  fibers.clear();
  w.write("workspace-write");
  CHECK(wait_until(w.host->loop(), [&] { return w.mode() == SandboxMode::workspace_write; }));
}

struct Rebuilt {
  Rebuilt() {
    copy(installation_directory() + "/plugins/sandbox.so");
    write_file(config, R"({"plugins": [{"plugin": ")" + library + R"(", "id": "policy"},
                          {"plugin": "hot-reload", "config": {"quietMs": 20}}]})");
    CompositionOptions options;
    options.log_level = LogLevel::off;
    options.config_file = config;
    host.emplace(options);
    policy = host->loader().fiber("policy");
  }
  // As a linker does: another file under the same name.
  void copy(const std::string& from) {
    std::filesystem::copy_file(from, library + ".new");
    std::filesystem::rename(library + ".new", library);
  }

  Scratch scratch;
  std::string config = scratch / "config.json";
  std::string library = scratch / "policy.so";
  std::optional<Host> host;
  std::shared_ptr<Fiber> policy;
};

TEST_CASE("hot-reload: a rebuilt plugin takes the place of the running one") {
  Rebuilt w;
  REQUIRE(w.policy);
  w.copy(installation_directory() + "/plugins/sandbox.so");
  CHECK(wait_until(w.host->loop(), [&] { return w.host->loader().fiber("policy") != w.policy; }));
}

TEST_CASE("hot-reload: a file that is no plugin leaves the running one") {
  Rebuilt w;
  REQUIRE(w.policy);
  w.copy(w.config);
  run_for(w.host->loop(), std::chrono::milliseconds(600));
  CHECK(w.host->loader().fiber("policy") == w.policy);
  w.copy(installation_directory() + "/plugins/sandbox.so");
  CHECK(wait_until(w.host->loop(), [&] { return w.host->loader().fiber("policy") != w.policy; }));
}

}  // namespace
