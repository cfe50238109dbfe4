// SPDX-License-Identifier: MIT
#include "host/composition.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "bash-sandbox/shell.hpp"
#include "plugins/script/script.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using stockade::test::Scratch;
using stockade::test::Thrown;
using stockade::test::thrown_by;
using stockade::test::write_file;

namespace {

std::vector<std::string> names(const LoaderConfig& config) {
  std::vector<std::string> out;
  for (const auto& entry : config.plugins) out.push_back(entry.plugin);
  return out;
}

nlohmann::json config_of(const LoaderConfig& config, const std::string& plugin) {
  for (const auto& entry : config.plugins)
    if (entry.plugin == plugin) return entry.config;
  FAIL("no entry for " + plugin);
  return {};
}

LoaderConfig compose_file(const std::string& text, CompositionOptions options = {}) {
  Scratch scratch;
  write_file(scratch / "config.json", text);
  options.config_file = scratch / "config.json";
  return compose(options);
}

Thrown refusal(const std::string& text, CompositionOptions options = {}) {
  return thrown_by([&] { compose_file(text, options); });
}

CompositionOptions quiet() {
  CompositionOptions options;
  options.log_level = LogLevel::off;
  options.backend = "landlock";  // alone, so that nothing is probed
  return options;
}

Task<BashResult> run_command(std::shared_ptr<Shell> shell, std::string command) {
  BashRequest request;
  request.command = std::move(command);
  auto running = shell->run(shell->resolve(request), {}, nullptr);
  BashResult result = co_await running;
  co_return result;
}

}  // namespace

TEST_CASE("composition: the default is the whole call path and no settings") {
  auto config = compose({});
  CHECK(names(config) == std::vector<std::string>{"sandbox", "sandbox-local", "bash-sandbox",
                                                  "approval", "sessions", "jobs", "tool-bash",
                                                  "script", "mcp"});
  for (const auto& entry : config.plugins) {
    CHECK((entry.config.is_null() || entry.config.empty()));
    CHECK_FALSE(entry.disabled);
  }
}

TEST_CASE("composition: options go into the entries that they are for") {
  CompositionOptions options;
  options.mode = "workspace-write";
  options.workspace = "/ws";
  options.backend = "bwrap";
  auto config = compose(options);
  CHECK(config_of(config, "sandbox") ==
        nlohmann::json{{"mode", "workspace-write"}, {"workspaceRoot", "/ws"}});
  CHECK(config_of(config, "bash-sandbox") == nlohmann::json{{"cwd", "/ws"}});
  CHECK(config_of(config, "sandbox-local") == nlohmann::json{{"backends", {"bwrap"}}});
  options.cwd = "/elsewhere";
  CHECK(config_of(compose(options), "bash-sandbox") == nlohmann::json{{"cwd", "/elsewhere"}});
}

TEST_CASE("composition: an option wins over the file and leaves the rest of it") {
  CompositionOptions options;
  options.mode = "read-only";
  auto config = compose_file(
      R"({"plugins": [{"plugin": "sandbox",
                       "config": {"mode": "danger-full-access", "workspaceRoot": "/ws"}}]})",
      options);
  CHECK(config_of(config, "sandbox") ==
        nlohmann::json{{"mode", "read-only"}, {"workspaceRoot", "/ws"}});
}

TEST_CASE("composition: a chosen backend puts aside a runner of the file") {
  CompositionOptions options;
  options.backend = "landlock";
  auto config = compose_file(
      R"({"plugins": [{"plugin": "sandbox-local",
                       "config": {"runnerCommand": ["/r"], "runnerFailureSignatures": ["r: "],
                                  "probeTimeoutMs": 7}}]})",
      options);
  CHECK(config_of(config, "sandbox-local") ==
        nlohmann::json{{"backends", {"landlock"}}, {"probeTimeoutMs", 7}});
}

TEST_CASE("composition: an option without an entry to go into is refused") {
  CompositionOptions mode;
  mode.mode = "read-only";
  CompositionOptions workspace;
  workspace.workspace = "/ws";
  CompositionOptions cwd;
  cwd.cwd = "/";
  CompositionOptions backend;
  backend.backend = "bwrap";
  struct Row {
    CompositionOptions options;
    std::string option;
    std::string plugin;
  };
  for (const auto& row :
       {Row{mode, "--mode", "sandbox"}, Row{workspace, "--workspace", "sandbox"},
        Row{cwd, "--cwd", "bash-sandbox"}, Row{backend, "--backend", "sandbox-local"}}) {
    auto thrown = refusal(R"({"plugins": [{"plugin": "script"}]})", row.options);
    CHECK(thrown.code == "CONFIG_INVALID");
    CHECK(thrown.operand == row.plugin);
    CHECK_THAT(thrown.text, ContainsSubstring(row.option));
  }
  CHECK(refusal(R"({"plugins": [{"plugin": "sandbox", "config": []}]})", mode).code ==
        "CONFIG_INVALID");
}

TEST_CASE("composition: a file that cannot be read is refused by name") {
  Scratch scratch;
  auto load = [&](const std::string& path) {
    return thrown_by([&] {
      CompositionOptions options;
      options.config_file = path;
      compose(options);
    });
  };
  auto missing = load(scratch / "missing.json");
  CHECK(missing.code == "CONFIG_INVALID");
  CHECK_THAT(missing.text, ContainsSubstring(scratch / "missing.json"));
  CHECK_THAT(missing.text, ContainsSubstring("ENOENT"));
  CHECK_THAT(load(scratch.path()).text, ContainsSubstring("directory"));
  // One that never ends is refused before it fills the host.
  CHECK_THAT(load("/dev/zero").text, ContainsSubstring("16 MiB"));
}

TEST_CASE("composition: a file that is no config is refused and never weakens anything") {
  for (const char* text :
       {"", "  \n", "null", "[]", "5", "{\"plugins\": [}", "{\"plugins\": null}",
        "\xEF\xBB\xBF{\"plugins\": []}", R"({"plugins": [], "plugins": []})", R"({"pluginz": []})",
        R"({"plugins": [{"plugin": "script", "enabled": 1}]})", R"({"plugins": [{"plugin": 5}]})",
        R"({"plugins": {}})"}) {
    CAPTURE(text);
    CHECK(refusal(text).code == "CONFIG_INVALID");
  }
  CHECK_THAT(refusal(R"({"pluginz": []})").text, ContainsSubstring("did you mean \"plugins\""));
}

TEST_CASE("host: a composition provides its services and runs a command") {
  Scratch scratch;
  auto options = quiet();
  options.mode = "danger-full-access";
  options.workspace = scratch.path();
  Host host(options);
  CHECK(host.service<ScriptRunner>());
  auto shell = host.service<Shell>();
  CHECK(shell->sandbox_mode() == SandboxMode::danger_full_access);
  BashResult result = host.run(run_command(shell, "pwd"));
  CHECK(result.out.bytes == scratch.path() + "\n");
}

TEST_CASE("host: an error of a task reaches the caller") {
  auto options = quiet();
  Host host(options);
  auto shell = host.service<Shell>();
  auto thrown = thrown_by([&] { host.run(run_command(shell, std::string("a\0b", 3))); });
  CHECK(thrown.code == "REQUEST_INVALID");
}

TEST_CASE("host: a service that is not there names what waits for what") {
  Scratch scratch;
  write_file(scratch / "config.json", R"({"plugins": [{"plugin": "tool-bash"}]})");
  CompositionOptions options;
  options.log_level = LogLevel::off;
  options.config_file = scratch / "config.json";
  Host host(options);
  auto thrown = thrown_by([&] { host.service<Shell>(); });
  CHECK(thrown.code == "SERVICE_UNAVAILABLE");
  CHECK(thrown.operand == "shell/1");
  CHECK_THAT(thrown.text, ContainsSubstring("\"tool-bash\" waits for \"shell/1\""));
}

TEST_CASE("host: a setting that no plugin accepts stops the start") {
  Scratch scratch;
  auto load = [&](const std::string& text) {
    write_file(scratch / "config.json", text);
    return thrown_by([&] {
      CompositionOptions options;
      options.log_level = LogLevel::off;
      options.config_file = scratch / "config.json";
      Host host(options);
    });
  };
  CHECK(load(R"({"plugins": [{"plugin": "sandbox", "config": {"mode": "read-only"}}]})")
            .code.empty());
  CHECK(
      load(R"({"plugins": [{"plugin": "sandbox", "config": {"mode": "workspace_write"}}]})").code ==
      "CONFIG_INVALID");
  CHECK(load(R"({"plugins": [{"plugin": "sandbox", "config": {"writeableRoots": ["/"]}}]})").code ==
        "CONFIG_INVALID");
  CHECK(load(R"({"plugins": [{"plugin": "sandbox-local",
                              "config": {"runnerCommand": ["bwrap"],
                                         "runnerFailureSignatures": ["bwrap: "]}}]})")
            .code == "CONFIG_INVALID");
  CHECK(load(R"({"plugins": [{"plugin": "no-such-plugin"}]})").code == "PLUGIN_UNUSABLE");
}
