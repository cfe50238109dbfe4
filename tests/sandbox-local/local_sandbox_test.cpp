// SPDX-License-Identifier: MIT
#include "sandbox-local/local_sandbox.hpp"

#include <filesystem>

#include "framework/config.hpp"
#include "sandbox-local/bwrap.hpp"
#include "sandbox-local/landlock.hpp"
#include "sandbox-local/probe.hpp"
#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using stockade::test::await_task;
using stockade::test::exists;
using stockade::test::Scratch;
using stockade::test::thrown_by;
using stockade::test::write_file;

namespace {

using Words = std::vector<std::string>;

std::shared_ptr<LocalSandbox> open_sandbox(SandboxLocalConfig config, BackendHost host) {
  Loop loop;
  return await_task(loop, LocalSandbox::open(loop, std::move(config), std::move(host),
                                             Log::standard_error(LogLevel::off)));
}

// One that nothing would work on, so that a probe could only fail.
BackendHost nowhere() {
  return {"/no-such/stockade-launch", "/no-such/bwrap", {}, false, 7, false};
}

SandboxLocalConfig only(Backend backend) {
  SandboxLocalConfig config;
  config.backends = {backend};
  return config;
}

SandboxLocalConfig custom(Words command) {
  SandboxLocalConfig config;
  config.runner_command = std::move(command);
  config.runner_failure_signatures = {"fake-runner: "};
  return config;
}

SandboxPolicy write_policy(const std::string& root) {
  return {ConfinedSandboxMode::workspace_write, root};
}
const SandboxPolicy kReadOnly{ConfinedSandboxMode::read_only, "/no-such-ws"};

std::string refusal(const SandboxLocalConfig& config) {
  auto thrown = thrown_by([&] { check_sandbox_local_config(config); });
  CHECK(thrown.code == "CONFIG_INVALID");
  return thrown.text;
}

}  // namespace

TEST_CASE("local_sandbox: an empty config has the documented defaults") {
  auto config = read_config<SandboxLocalConfig>(parse_config("{}", "t"), "t");
  CHECK(config.backends ==
        std::vector<Backend>{Backend::namespace_, Backend::bwrap, Backend::landlock});
  CHECK_FALSE(config.require_full);
  CHECK(config.runner_command.empty());
  CHECK(config.runner_failure_signatures.empty());
  CHECK(config.probe_timeout_ms == 5000);
  check_sandbox_local_config(config);
}

TEST_CASE("local_sandbox: a config of the wrong shape is refused with its key") {
  auto load = [](const char* text) {
    return thrown_by([&] {
      check_sandbox_local_config(read_config<SandboxLocalConfig>(parse_config(text, "t"), "t"));
    });
  };
  CHECK(
      load(R"({"backends": ["landlock"], "requireFull": true, "probeTimeoutMs": 1})").code.empty());
  for (const char* text : {R"({"probeTimeoutMs": 1.5})", R"({"probeTimeoutMs": -1})",
                           R"({"probeTimeoutMs": 0})", R"({"probeTimeoutMs": "1"})",
                           R"({"probeTimeoutMs": null})", R"({"probeTimeoutMs": 1e12})"}) {
    CAPTURE(text);
    CHECK(load(text).code == "CONFIG_INVALID");
    CHECK(load(text).operand == "$.probeTimeoutMs");
  }
  CHECK_THAT(load(R"({"backends": ["bwarp"]})").text, ContainsSubstring("did you mean \"bwrap\""));
  CHECK(load(R"({"backend": "bwrap"})").operand == "$.backend");
  CHECK(load(R"({"backends": []})").operand == "$.backends");
}

TEST_CASE("local_sandbox: runner settings that do not go together are refused") {
  SandboxLocalConfig config;
  config.runner_failure_signatures = {"x: "};
  CHECK(refusal(config) == "sandbox-local: runnerFailureSignatures requires runnerCommand");

  config = custom({"/r"});
  config.runner_failure_signatures.clear();
  CHECK(refusal(config) ==
        "sandbox-local: runnerCommand requires at least one runnerFailureSignatures entry");

  for (const char* signature : {"", " ", "\t", "a\nb", "a\r", "\n"}) {
    config = custom({"/r"});
    config.runner_failure_signatures = {"good: ", signature};
    CHECK(refusal(config) ==
          "sandbox-local: runnerFailureSignatures entries must be non-empty single-line strings");
  }
  config = custom({"/r"});
  config.probe_timeout_ms = 0;
  CHECK(refusal(config) == "sandbox-local: probeTimeoutMs must be a positive finite number");
  check_sandbox_local_config(custom({"/r", "--flag"}));
}

TEST_CASE("local_sandbox: a runner that is looked up on PATH is refused") {
  for (const char* program : {"fake-runner", "./fake-runner", ""})
    CHECK_THAT(refusal(custom({program})), ContainsSubstring("must begin with an absolute path"));
}

TEST_CASE("local_sandbox: a custom runner gets the plain profile and nothing is probed") {
  Scratch scratch("/var/tmp");
  Scratch place;
  std::string runner = place / "fake-runner";
  write_file(runner, "#!/bin/sh\ntouch \"$0.ran\"\n", 0755);
  auto sandbox = open_sandbox(custom({runner, "--flag"}), nowhere());
  auto confined = sandbox->confine({"bash", "-c", "echo hi"}, write_policy(scratch.path()), "/");
  Words expected{runner, "--flag"};
  for (const auto& word : plain_bwrap_profile(write_policy(scratch.path())))
    expected.push_back(word);
  for (const char* word : {"--", "bash", "-c", "echo hi"}) expected.push_back(word);
  CHECK(confined.argv == expected);
  CHECK(confined.backend == "custom");
  CHECK(confined.enforcement == SandboxEnforcement::full);
  CHECK(confined.denial_signatures == Words{"read-only file system", "permission denied"});
  REQUIRE(confined.runner_failure_rules.size() == 1);
  CHECK(confined.runner_failure_rules[0].fatal_signatures == Words{"fake-runner: "});
  CHECK_FALSE(confined.runner_failure_rules[0].allowed_exit_codes);
  CHECK_FALSE(confined.status_channel);
  CHECK_FALSE(exists(runner + ".ran"));
}

TEST_CASE("local_sandbox: one backend alone is not probed") {
  auto bwrap = open_sandbox(only(Backend::bwrap), nowhere())->confine({"true"}, kReadOnly, "/");
  CHECK(bwrap.argv == confine_bwrap(nowhere(), {{"true"}, kReadOnly, "/", "", ""}).argv);
  auto landlock =
      open_sandbox(only(Backend::landlock), nowhere())->confine({"true"}, kReadOnly, "/");
  CHECK(landlock.argv == confine_landlock(nowhere(), {{"true"}, kReadOnly, "/", "", ""}).argv);
}

TEST_CASE("local_sandbox: a host without a usable backend refuses with every reason") {
  BackendHost host = nowhere();
  host.bwrap.clear();
  SandboxLocalConfig config;
  config.backends = {Backend::namespace_, Backend::bwrap, Backend::landlock, Backend::seatbelt};
  auto sandbox = open_sandbox(config, host);
  for (auto mode : {ConfinedSandboxMode::read_only, ConfinedSandboxMode::workspace_write}) {
    Scratch scratch;
    auto thrown = thrown_by([&] { sandbox->confine({"true"}, {mode, scratch.path()}, "/"); });
    CHECK(thrown.code == "SANDBOX_UNAVAILABLE");
    CHECK_THAT(thrown.text, ContainsSubstring("\"" + to_string(mode) + "\""));
    CHECK_THAT(thrown.text, ContainsSubstring("namespace: the launcher /no-such/stockade-launch"));
    CHECK_THAT(thrown.text, ContainsSubstring("; bwrap: no trusted bwrap"));
    CHECK_THAT(thrown.text, ContainsSubstring("; landlock: the launcher /no-such/stockade-launch"));
    CHECK_THAT(thrown.text, ContainsSubstring("; seatbelt: no /usr/bin/sandbox-exec"));
  }
}

TEST_CASE("local_sandbox: a chosen bwrap that is not installed is refused") {
  BackendHost host = nowhere();
  host.bwrap.clear();
  auto sandbox = open_sandbox(only(Backend::bwrap), host);
  auto thrown = thrown_by([&] { sandbox->confine({"true"}, kReadOnly, "/"); });
  CHECK(thrown.code == "SANDBOX_UNAVAILABLE");
  CHECK_THAT(thrown.text, ContainsSubstring(std::string(kBwrapMissing)));
}

TEST_CASE("local_sandbox: the next backend serves when the first proves unusable") {
  Scratch scratch;
  BackendHost host = inspect_host();
  host.bwrap = scratch / "bwrap";
  write_file(host.bwrap,
             "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n", 0755);
  SandboxLocalConfig config;
  config.backends = {Backend::bwrap, Backend::landlock};
  auto sandbox = open_sandbox(config, host);
  if (host.landlock_abi > 0) {
    auto confined = sandbox->confine({"true"}, kReadOnly, "/");
    CHECK(confined.argv == confine_landlock(host, {{"true"}, kReadOnly, "/", "", ""}).argv);
  } else {
    CHECK_THAT(
        thrown_by([&] { sandbox->confine({"true"}, kReadOnly, "/"); }).text,
        ContainsSubstring("bwrap: bwrap: setting up uid map: Permission denied; landlock: "));
  }
}

TEST_CASE("local_sandbox: a probe that ran out of time is tried again") {
  Scratch scratch;
  BackendHost host = inspect_host();
  host.bwrap = scratch / "bwrap";
  write_file(host.bwrap,
             "#!/bin/sh\nif mkdir \"$0.once\"; then sleep 60; fi\n"
             "echo '{\"status\":\"ready\"}' >&3\n: > inside\n",
             0755);
  SandboxLocalConfig config;
  config.backends = {Backend::bwrap, Backend::landlock};
  config.probe_timeout_ms = 3000;
  CHECK(open_sandbox(config, host)->confine({"true"}, kReadOnly, "/").backend == "bwrap");
  CHECK(exists(host.bwrap + ".once"));
}

TEST_CASE("local_sandbox: the order of backends is the order of preference") {
  BackendHost host = inspect_host();
  SandboxLocalConfig config;
  config.backends = {Backend::landlock, Backend::bwrap};
  auto sandbox = open_sandbox(config, host);
  if (host.landlock_abi > 0)
    CHECK(sandbox->confine({"true"}, kReadOnly, "/").backend == "landlock");
  else
    CHECK(thrown_by([&] {
            auto confined = sandbox->confine({"true"}, kReadOnly, "/");
            if (confined.backend != "bwrap") throw Error("WRONG_BACKEND", confined.backend);
          }).code != "WRONG_BACKEND");
}

TEST_CASE("local_sandbox: this host gives a usable argv or refuses") {
  auto sandbox = open_sandbox({}, inspect_host());
  std::string backend;
  auto thrown = thrown_by([&] { backend = sandbox->confine({"true"}, kReadOnly, "/").backend; });
  if (thrown.code.empty())
    CHECK((backend == "namespace" || backend == "bwrap" || backend == "landlock"));
  else
    CHECK(thrown.code == "SANDBOX_UNAVAILABLE");
}

TEST_CASE("local_sandbox: a backend that a probe saw leave metadata open is partial") {
  Scratch scratch;
  BackendHost host = inspect_host();
  host.root = false;
  host.landlock_abi = 7;
  host.shared_mounts = false;
  host.bwrap = scratch / "bwrap";
  auto fake = [&](const std::string& work) {
    write_file(host.bwrap,
               "#!/bin/sh\necho '{\"status\":\"ready\"}' >&3\n"
               "while [ \"$1\" != -- ]; do shift; done; shift\n"
               "while [ \"$1\" != -- ]; do shift; done; shift 5\n" +
                   work,
               0755);
  };
  fake(": > inside\n");
  SandboxLocalConfig config;
  config.backends = {Backend::bwrap, Backend::landlock};
  auto full = open_sandbox(config, host)->confine({"true"}, kReadOnly, "/");
  CHECK(full.backend == "bwrap");
  CHECK(full.enforcement == SandboxEnforcement::full);
  fake(": > inside; chmod 777 \"$1/victim\"\n");
  auto partial = open_sandbox(config, host)->confine({"true"}, kReadOnly, "/");
  CHECK(partial.backend == "bwrap");
  CHECK(partial.enforcement == SandboxEnforcement::partial);
  REQUIRE(partial.enforcement_reasons.size() == 1);
  CHECK_THAT(partial.enforcement_reasons[0], ContainsSubstring("chmod"));
}

TEST_CASE("local_sandbox: requireFull refuses what enforces only partially") {
  SandboxLocalConfig config = only(Backend::landlock);
  config.require_full = true;
  BackendHost old = nowhere();
  old.landlock_abi = 1;
  auto sandbox = open_sandbox(config, old);
  auto thrown = thrown_by([&] { sandbox->confine({"true"}, kReadOnly, "/"); });
  CHECK(thrown.code == "SANDBOX_UNAVAILABLE");
  CHECK_THAT(thrown.text,
             ContainsSubstring("landlock: it enforces only partially and requireFull"));

  config = only(Backend::bwrap);
  config.require_full = true;
  CHECK(open_sandbox(config, nowhere())->confine({"true"}, kReadOnly, "/").enforcement ==
        SandboxEnforcement::full);
  BackendHost root = nowhere();
  root.root = true;
  CHECK(thrown_by([&] { open_sandbox(config, root)->confine({"true"}, kReadOnly, "/"); }).code ==
        "SANDBOX_UNAVAILABLE");
}

TEST_CASE("local_sandbox: requireFull passes over a partial backend in the chain") {
  BackendHost host = inspect_host();
  host.bwrap.clear();
  host.landlock_abi = 1;
  SandboxLocalConfig config;
  config.backends = {Backend::bwrap, Backend::landlock};
  config.require_full = true;
  auto sandbox = open_sandbox(config, host);
  auto thrown = thrown_by([&] { sandbox->confine({"true"}, kReadOnly, "/"); });
  CHECK(thrown.code == "SANDBOX_UNAVAILABLE");
  CHECK_THAT(thrown.text, ContainsSubstring("landlock: "));
  CHECK_THAT(thrown.text, ContainsSubstring("requireFull"));
}

TEST_CASE("local_sandbox: a workspace that would undo the sandbox is refused by every runner") {
  for (const auto& config :
       {only(Backend::namespace_), only(Backend::bwrap), only(Backend::landlock), custom({"/r"})}) {
    auto sandbox = open_sandbox(config, nowhere());
    for (const char* root : {"/", "/proc", "/dev", "/no-such-ws", "relative"})
      CHECK(thrown_by([&] { sandbox->confine({"true"}, write_policy(root), "/"); }).code ==
            "WORKSPACE_REFUSED");
    // Nothing is written there in read-only, so the root does not matter.
    sandbox->confine({"true"}, {ConfinedSandboxMode::read_only, "/"}, "/");
  }
}

TEST_CASE("local_sandbox: a workspace that holds the launcher is refused") {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "lib");
  BackendHost host = nowhere();
  host.launcher = scratch / "lib/stockade-launch";
  write_file(host.launcher, "", 0755);
  auto sandbox = open_sandbox(only(Backend::landlock), host);
  auto thrown = thrown_by([&] { sandbox->confine({"true"}, write_policy(scratch.path()), "/"); });
  CHECK(thrown.code == "WORKSPACE_REFUSED");
  CHECK_THAT(thrown.text, ContainsSubstring(host.launcher));
}

TEST_CASE("local_sandbox: a working directory that the private tmp would cover is refused") {
  Scratch workspace("/tmp");
  Scratch outside("/tmp");
  auto policy = write_policy(workspace.path());
  for (const auto& config : {only(Backend::namespace_), only(Backend::bwrap), custom({"/r"})}) {
    auto sandbox = open_sandbox(config, nowhere());
    auto thrown = thrown_by([&] { sandbox->confine({"true"}, policy, outside.path()); });
    CHECK(thrown.code == "WORKDIR_REFUSED");
    CHECK(thrown.operand == outside.path());
    CHECK_THAT(thrown.text, ContainsSubstring(workspace.path()));
    sandbox->confine({"true"}, policy, workspace.path());
    sandbox->confine({"true"}, policy, "/usr");
  }
  // Landlock shows the host's own /tmp.
  open_sandbox(only(Backend::landlock), nowhere())->confine({"true"}, policy, outside.path());
}
