// SPDX-License-Identifier: MIT
// The doctor on hosts that lack something: simulated for one process by a seccomp filter or a
// private mount namespace, never by changing this host.
#include <unistd.h>

#include "tests/e2e/world.hpp"

using namespace stockade::test;

namespace {

using Words = std::vector<std::string>;

struct Diagnosis {
  int status = -1;
  nlohmann::json json;
  std::string raw;

  const nlohmann::json& backend(const std::string& name) const {
    for (const auto& one : json.at("backends"))
      if (one.at("backend") == name) return one;
    throw std::runtime_error("no backend " + name + " in " + raw);
  }
  bool usable(const std::string& name) const { return backend(name).at("usable"); }
  std::string words(const std::string& name) const {
    return backend(name).at("reasons").dump() + backend(name).at("advice").dump();
  }
};

// `stockade doctor --json` as the world's user, below the program `wrapper`; in a private mount
// namespace where root's `mounts` ran before. The build tree is out of an ordinary user's reach, so
// the wrapper comes before the user is changed.
Diagnosis diagnose(const World& world, const Words& wrapper = {}, const std::string& mounts = {}) {
  Words argv;
  bool root = geteuid() == 0;
  std::string uid = std::to_string(world.uid);
  if (root)
    argv = {"unshare", "--mount", "--propagation",          "private",
            "bash",    "-euc",    mounts + "\nexec \"$@\"", "bash"};
  argv.insert(argv.end(), wrapper.begin(), wrapper.end());
  if (root) argv.insert(argv.end(), {"setpriv", "--reuid", uid, "--regid", uid, "--clear-groups"});
  argv.insert(argv.end(), {world.prefix + "/bin/stockade", "doctor", "--json"});
  ProgramOptions options;
  options.cwd = world.workspace();
  ProgramResult result = run_program(argv, options);
  INFO(result.err << result.out);
  REQUIRE_FALSE(result.timed_out);
  Diagnosis found{result.status, nlohmann::json::parse(result.out, nullptr, false), result.out};
  REQUIRE(found.json.is_object());
  CHECK(found.json["healthy"] == (found.status == 0));
  return found;
}

const std::string kHideBwrap =
    "mount --bind /dev/null \"$(readlink -f \"$(command -v bwrap)\")\"\n";
// As docker and podman do.
const std::string kMaskProc =
    "mount -t tmpfs -o ro tmpfs /proc/fs\nmount --bind /dev/null /proc/cmdline\n"
    "mount --bind /proc/sys /proc/sys\nmount -o remount,bind,ro /proc/sys\n";

Words withhold(std::initializer_list<std::string> what) {
  Words words{std::string(TEST_PROGRAMS) + "/withhold"};
  words.insert(words.end(), what);
  words.push_back("--");
  return words;
}

bool may_mount() {
  if (geteuid() == 0) return true;
  SUCCEED("changing what is mounted needs root");
  return false;
}

}  // namespace

TEST_CASE("doctor: on this host every backend works and namespace is full") {
  for_each_user("doctor", [](const World& world) {
    auto found = diagnose(world);
    INFO(found.raw);
    CHECK(found.status == 0);
    CHECK(found.json["chosen"] == "namespace");
    CHECK(found.json["uid"] == world.uid);
    for (const char* name : {"namespace", "bwrap", "landlock"}) CHECK(found.usable(name));
    CHECK(found.backend("namespace")["enforcement"] == "full");
    CHECK(found.backend("landlock")["enforcement"] == "full");
  });
}

TEST_CASE("doctor: the text names the chosen backend and ends with a verdict") {
  for_each_user("doctor", [](const World& world) {
    auto result = world.stockade({"doctor"});
    CHECK(result.status == 0);
    CHECK_THAT(result.out,
               ContainsSubstring("namespace: works, enforcement full (used by default)") &&
                   ContainsSubstring("Confined commands run with full enforcement."));
  });
}

TEST_CASE("doctor: without bwrap it says what to install") {
  if (!may_mount()) return;
  for_each_user("doctor", [](const World& world) {
    auto found = diagnose(world, {}, kHideBwrap);
    CHECK(found.status == 0);
    CHECK_FALSE(found.usable("bwrap"));
    CHECK_THAT(found.words("bwrap"), ContainsSubstring("install bubblewrap"));
    CHECK(found.usable("namespace"));
  });
}

TEST_CASE("doctor: where namespaces are forbidden landlock is left and the cause is told") {
  for_each_user("doctor", [](const World& world) {
    auto found = diagnose(world, withhold({"--namespaces"}));
    INFO(found.raw);
    CHECK(found.status == 0);
    CHECK(found.json["chosen"] == "landlock");
    for (const char* name : {"namespace", "bwrap"}) {
      CHECK_FALSE(found.usable(name));
      CHECK_THAT(found.words(name), ContainsSubstring("namespace"));
      CHECK_FALSE(found.backend(name)["advice"].empty());
    }
    CHECK(found.backend("landlock")["enforcement"] == "full");
  });
}

TEST_CASE("doctor: where a container covers proc the flag that uncovers it is named") {
  if (!may_mount()) return;
  World world("doctor", users().back());
  auto found = diagnose(world, {}, kMaskProc);
  INFO(found.raw);
  CHECK(found.status == 0);
  CHECK(found.json["chosen"] == "landlock");
  for (const char* name : {"namespace", "bwrap"}) {
    CHECK_FALSE(found.usable(name));
    CHECK_THAT(found.words(name), ContainsSubstring("systempaths=unconfined"));
  }
}

TEST_CASE("doctor: without Landlock no backend is full and the kernel is asked for") {
  for_each_user("doctor", [](const World& world) {
    auto found = diagnose(world, withhold({"--landlock"}));
    INFO(found.raw);
    CHECK(found.status == 1);
    CHECK(found.json["landlockAbi"] == 0);
    CHECK_FALSE(found.usable("landlock"));
    CHECK_THAT(found.words("landlock"), ContainsSubstring("landlock_create_ruleset"));
    CHECK(found.usable("namespace"));
    CHECK(found.backend("namespace")["enforcement"] == "partial");
    CHECK(found.json["chosen"] == "namespace");
  });
}

TEST_CASE("doctor: with everything withheld nothing works and every reason is told") {
  if (!may_mount()) return;
  for_each_user("doctor", [](const World& world) {
    auto found = diagnose(world, withhold({"--namespaces", "--landlock"}), kHideBwrap + kMaskProc);
    INFO(found.raw);
    CHECK(found.status == 1);
    CHECK(found.json["chosen"].is_null());
    for (const auto& one : found.json["backends"]) {
      CHECK(one["usable"] == false);
      CHECK_FALSE(one["reasons"].empty());
      CHECK_FALSE(one["advice"].empty());
    }
  });
}
