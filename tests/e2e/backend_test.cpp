// SPDX-License-Identifier: MIT
// The boundary itself, under each backend and for each user. What is denied is judged by the host's
// files afterwards, and each denial has a control that succeeds unconfined.
#include <sys/stat.h>
#include <unistd.h>

#include "tests/e2e/world.hpp"

using namespace stockade::test;

namespace {

const std::vector<std::string> kConfined{"read-only", "workspace-write"};

mode_t permissions(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

}  // namespace

BACKEND_TEST("read-only denies a write in the workspace") {
  auto result = world.json("read-only", "echo x > f");
  CHECK(result["outcome"] == "denied");
  CHECK(result["exitCode"] == 1);
  CHECK(result["status"] == 1);
  CHECK(result["sandbox"]["mode"] == "read-only");
  CHECK(result["sandbox"]["backend"] == world.backend);
  CHECK(result["sandbox"]["denied"] == true);
  CHECK(result["sandbox"]["ran"] == true);
  CHECK_FALSE(exists(world.workspace() + "/f"));
}

BACKEND_TEST("workspace-write writes in the workspace") {
  auto result = world.json("workspace-write", "echo x > f && mkdir d && mv f d/g && chmod 600 d/g");
  CHECK(result["outcome"] == "ok");
  CHECK(result["exitCode"] == 0);
  CHECK(result["status"] == 0);
  CHECK(result["sandbox"]["denied"] == false);
  CHECK(read_file(world.workspace() + "/d/g") == "x\n");
  CHECK(permissions(world.workspace() + "/d/g") == 0600);
}

BACKEND_TEST("no mode but danger-full-access writes outside the workspace") {
  std::string file = world.outside_file("f", "untouched");
  std::string attack = "cd " + world.outside() + "; echo x > new; echo x > f; rm f; exit 1";
  for (const auto& mode : kConfined) {
    INFO(mode);
    auto result = world.json(mode, attack);
    CHECK(result["outcome"] == "denied");
    CHECK(read_file(file) == "untouched");
    CHECK_FALSE(exists(world.outside() + "/new"));
  }
  auto control = world.json("danger-full-access", attack);
  CHECK(control["outcome"] == "failed");
  CHECK_FALSE(exists(file));
  CHECK(exists(world.outside() + "/new"));
}

BACKEND_TEST("a write to a system directory is denied") {
  for (const auto& mode : kConfined) {
    auto result = world.json(mode, "echo x > /etc/stockade-test");
    CHECK(result["outcome"] == "denied");
    CHECK_FALSE(exists("/etc/stockade-test"));
  }
}

BACKEND_TEST("links out of the workspace lead nowhere") {
  std::string file = world.outside_file("f", "untouched");
  auto result =
      world.json("workspace-write", "ln -s " + file + " s; echo x >> s; ln " + file +
                                        " h; echo x >> h; mv " + file + " stolen; exit 1");
  CHECK(result["outcome"] == "denied");
  CHECK(read_file(file) == "untouched");
}

BACKEND_TEST("what is full lets no metadata be changed and what lets it is partial") {
  std::string file = world.outside_file("f", "x");
  auto result = world.json("workspace-write", "chmod 777 " + file);
  bool changed = permissions(file) == 0777;
  CHECK_FALSE(changed);
  if (changed) CHECK(result["sandbox"]["enforcement"] == "partial");
  CHECK((result["sandbox"]["enforcement"] == "full" ||
         result["sandbox"]["enforcement"] == "partial"));
  auto control = world.json("danger-full-access", "chmod 770 " + file);
  CHECK(permissions(file) == 0770);
}

BACKEND_TEST("the exit code of the command is the exit code") {
  for (const char* mode : {"read-only", "workspace-write", "danger-full-access"}) {
    auto result = world.json(mode, "exit 3");
    CHECK(result["outcome"] == "failed");
    CHECK(result["exitCode"] == 3);
    CHECK(result["status"] == 3);
    CHECK(world.json(mode, "exit 125")["outcome"] == "failed");
    CHECK(world.json(mode, "no-such-command")["exitCode"] == 127);
  }
}

BACKEND_TEST("words alone are neither a denial nor a failed runner") {
  auto result =
      world.json("read-only", "echo 'Permission denied; Read-only file system' >&2; exit 0");
  CHECK(result["outcome"] == "ok");
  for (const char* line : {"bwrap: Can'\\''t mount proc on /newroot/proc: Operation not permitted",
                           "landlock-run: cannot restrict", "stockade-launch: refused"})
    for (const char* code : {"1", "125"}) {
      auto forged = world.json("read-only", std::string("echo '") + line + "' >&2; exit " + code);
      CHECK(forged["outcome"] == "failed");
      CHECK(forged["sandbox"]["ran"] == true);
    }
}

BACKEND_TEST("the status channel cannot be reached by the command") {
  auto result = world.json(
      "read-only",
      "for fd in $(seq 3 255); do echo '{\"status\":\"refused\"}' >&$fd; done 2>/dev/null; "
      "for p in $PPID 1; do for f in /proc/$p/fd/*; do "
      "echo '{\"status\":\"refused\"}' > $f; done 2>/dev/null; done; exit 125");
  CHECK(result["outcome"] == "failed");
  CHECK(result["exitCode"] == 125);
}

BACKEND_TEST("a timeout ends the command and everything it started") {
  // A duration that no other process has on its command line.
  std::string mark = "61." + std::to_string(getpid()) + std::to_string(world.uid);
  for (const char* mode : {"read-only", "workspace-write", "danger-full-access"}) {
    auto result = world.json(mode, "sleep " + mark + " & sleep " + mark, {"--timeout-ms", "300"});
    CHECK(result["outcome"] == "timed-out");
    CHECK(result["timedOut"] == true);
    CHECK(result["timeoutMs"] == 300);
    CHECK(result["status"] == 124);
    CHECK(result["durationMs"] < 1300);
    CHECK(processes_with("sleep " + mark).empty());
  }
}

BACKEND_TEST("a command that ignores TERM is killed after the grace") {
  write_file(world.workspace() + "/config.json", R"({"plugins": [{"plugin": "sandbox"},
    {"plugin": "sandbox-local"}, {"plugin": "bash-sandbox", "config": {"graceMs": 200}}]})");
  auto result = world.json("read-only", "trap '' TERM; while :; do sleep 0.05; done",
                           {"--timeout-ms", "200", "--config", world.workspace() + "/config.json"});
  CHECK(result["outcome"] == "timed-out");
  CHECK(result["durationMs"] < 2000);
}

BACKEND_TEST("death by a signal is reported and never ok") {
  auto result =
      world.json("read-only", "echo 'Read-only file system: Permission denied' >&2; kill -9 $$");
  CHECK(result["outcome"] == "failed");
  CHECK(result["timedOut"] == false);
  CHECK(result["signal"] == "SIGKILL");
  CHECK(result["status"] == 137);
}

BACKEND_TEST("an inherited descriptor does not reach the command") {
  std::string leak = world.outside_file("leak", "");
  std::string script = "exec 9<>" + leak + " 8<" + world.outside() + "; exec \"$@\"";
  auto run = [&](const std::string& mode) {
    ProgramOptions options;
    if (geteuid() == 0) options.uid = world.uid;
    options.cwd = world.workspace();
    return run_program(
        {"bash", "-c", script, "bash", world.prefix + "/bin/stockade", "exec", "--mode", mode,
         "--backend", world.backend, "--", "echo pwned >&9; ls /proc/self/fd; true"},
        options);
  };
  for (const char* mode : {"read-only", "workspace-write", "danger-full-access"}) {
    auto result = run(mode);
    CHECK(result.status == 0);
    CHECK(result.out == "0\n1\n2\n3\n");  // 3 is the directory that `ls` reads
    CHECK(read_file(leak).empty());
  }
}

BACKEND_TEST("the usual devices and descriptors work") {
  for (const char* mode : {"read-only", "workspace-write"}) {
    auto result = world.json(
        mode,
        "set -e; echo e >/dev/stderr; echo o >/dev/stdout; : >/dev/null; cat /dev/stdin; "
        "diff <(echo a) <(echo a); echo x | tee /dev/stderr; head -c1 /dev/urandom | wc -c");
    CHECK(result["outcome"] == "ok");
    CHECK(result["stdout"]["text"] == "o\nx\n1\n");
    CHECK(result["stderr"]["text"] == "e\nx\n");
  }
  CHECK(world.json("workspace-write",
                   "cat <<<h; t=$(mktemp) && echo y > $t && cat $t")["stdout"]["text"] == "h\ny\n");
}

BACKEND_TEST("the host's secrets and hooks do not reach the command") {
  write_file(world.workspace() + "/hook.sh", "echo HOOKED\n");
  ProgramOptions options;
  options.environment = {{"X_API_KEY", "s3cr3t"},
                         {"BASH_ENV", world.workspace() + "/hook.sh"},
                         {"BASH_FUNC_ls%%", "() { echo HIJACKED; }"},
                         {"STOCKADE_THING", "s3cr3t"},
                         {"PLAIN", "kept"}};
  auto result = world.stockade({"exec", "--backend", world.backend, "--", "env; ls -d /"}, options);
  CHECK(result.status == 0);
  CHECK(result.out.find("s3cr3t") == std::string::npos);
  CHECK(result.out.find("HOOKED") == std::string::npos);
  CHECK(result.out.find("HIJACKED") == std::string::npos);
  CHECK(result.out.find("PLAIN=kept\n") != std::string::npos);
  CHECK(result.out.find("NO_COLOR=1\n") != std::string::npos);
}

TEST_CASE("bwrap: root has no capability to undo the sandbox with") {
  if (geteuid() != 0) {
    SUCCEED("the user of this run has none to begin with");
    return;
  }
  World world("bwrap", 0);
  std::string file = world.outside_file("f", "untouched");
  std::string domain = read_file("/proc/sys/kernel/domainname");
  auto result = world.json("workspace-write",
                           "mount -o remount,bind,rw / && echo x > " + file +
                               "; umount -l /proc/sys; echo hacked > /proc/sys/kernel/domainname; "
                               "mknod node b 7 0; unshare -m true; exit 1");
  CHECK(result["sandbox"]["ran"] == true);
  CHECK(read_file(file) == "untouched");
  CHECK(read_file("/proc/sys/kernel/domainname") == domain);
  CHECK_FALSE(exists(world.workspace() + "/node"));
}
