// SPDX-License-Identifier: MIT
// Attacks that need a call, or a host, of their own.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "tests/attacks/attack.hpp"

namespace stockade::test {

namespace {

using Outcome = Special::Outcome;

std::string workspace_of(const std::string& scratch) {
  return scratch + "/workspace";
}

Called control(const Cell& cell, const std::string& command) {
  return {run_program({"/bin/bash", "-c", command}, as_user(cell)), nullptr};
}

bool wait_for(const std::function<bool()>& condition) {
  for (int i = 0; i < 600; ++i) {
    if (condition()) return true;
    usleep(10'000);
  }
  return false;
}

// ---- the host and what it says --------------------------------------------------------------

// Everything that a command could write to says that it never ran.
Outcome forge(const Cell& cell, const std::string& scratch) {
  Place place(scratch, "forge", cell.uid);
  std::string line = R"({"status":"refused","message":"forged"})";
  std::string descriptors = "line='" + line + "'\n" +
                            "for fd in $(seq 3 255); do echo \"$line\" >&$fd; done 2>/dev/null\n";
  // Where a status channel is open, the forgery arrives. Other processes' are left alone here.
  if (cell.control()) {
    std::string file = place.outside + "/channel";
    control(cell, "exec 77>" + file + "\n" + descriptors);
    return {read_file(file).find("forged") != std::string::npos, ""};
  }
  std::string script = descriptors +
                       "H=$(awk '/^PPid/{print $2}' /proc/$PPID/status 2>/dev/null)\n"
                       "for p in $PPID $H 1; do\n"
                       "  for f in /proc/$p/fd/*; do echo \"$line\" > $f; done\n"
                       "  for fd in 3 4 5 6 7 10 20; do " +
                       attack_program("poke") +
                       " fd $p $fd; done\n"
                       "done 2>/dev/null\n"
                       "echo 'landlock-run: forged' >&2; echo 'bwrap: forged' >&2; exit 125";
  auto called = call(cell, workspace_of(scratch), script);
  bool true_verdict = called.json.is_object() && called.json["outcome"] == "failed" &&
                      called.json["exitCode"] == 125 && called.json["sandbox"]["ran"] == true;
  return {!true_verdict, called.enforcement()};
}

// Whatever stands above the command, up to the host, is to be killed, stopped and overwritten.
Outcome kill_host(const Cell& cell, const std::string& scratch) {
  Place place(scratch, "kill-host", cell.uid);
  std::string script =
      "p=$PPID; for i in 1 2 3; do\n"
      "  H=$(awk '/^PPid/{print $2}' /proc/$p/status)\n"
      "  kill -STOP $p; echo x > /proc/$p/mem; kill -KILL $p\n"
      "  p=$H; [ -n \"$p\" ] && [ \"$p\" -gt 1 ] && "
      "grep -q stockade /proc/$p/comm || break\n"
      "done 2>/dev/null\n"
      "echo alive";
  ProgramOptions options = as_user(cell);
  options.timeout_ms = 20000;
  auto called = call(cell, workspace_of(scratch), script, {}, options);
  bool alive = called.json.is_object() && called.json["outcome"] == "ok" &&
               called.json["stdout"].dump().find("alive") != std::string::npos;
  return {!alive, called.enforcement()};
}

// The host's standard output is a file of the user's; the command is to have a pipe.
Outcome output_file(const Cell& cell, const std::string& scratch) {
  Place place(scratch, "output", cell.uid);
  std::string file = place.outside + "/out";
  std::string script =
      "H=$(awk '/^PPid/{print $2}' /proc/$PPID/status)\n"
      "for f in /dev/stdout /proc/self/fd/1 /proc/$PPID/fd/1 /proc/$H/fd/1; do\n"
      "  chmod 711 $f; : > $f; done 2>/dev/null; exit 0";
  std::string quoted = place.inside + "/script";
  write_file(quoted, script);
  if (cell.control()) {
    control(cell, "bash " + quoted + " >" + file);
  } else {
    std::string run = "exec " + installed("bin/stockade") + " exec --json --mode " + cell.mode +
                      " --backend " + cell.backend + " --workspace " + workspace_of(scratch) +
                      " -- bash " + quoted + " >" + file;
    control(cell, run);
  }
  struct stat info {};
  bool changed = stat(file.c_str(), &info) != 0 || (info.st_mode & 07777) == 0711;
  bool whole = cell.control() || nlohmann::json::accept(read_file(file));
  return {changed || !whole, ""};
}

// ---- processes that stay ----------------------------------------------------------------------

Outcome survivors(const Cell& cell, const std::string& scratch, bool timeout) {
  Place place(scratch, "survivors", cell.uid);
  std::string mark = "stockade-survivor-" + std::to_string(getpid()) + (timeout ? "-t" : "-e");
  std::string script = attack_program("forks") + " 100 " + mark + (timeout ? "; sleep 60" : "");
  Called called;
  if (cell.control())
    called = control(cell, attack_program("forks") + " 100 " + mark);
  else if (timeout)
    called = call(cell, workspace_of(scratch), script, {"--timeout-ms", "1500"});
  else
    called = call(cell, workspace_of(scratch), script);
  auto left = processes_with(mark);
  for (pid_t pid : left) kill(pid, SIGKILL);
  return {!left.empty(), called.enforcement()};
}

// ---- the user's terminal ----------------------------------------------------------------------

Outcome on_terminal(const Cell& cell, const std::string& scratch, const std::string& attack,
                    bool (*through)(int master, int slave)) {
  Place place(scratch, "terminal", cell.uid);
  int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
    throw std::runtime_error("no terminal");
  std::string name = ptsname(master);
  int slave = open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  place.give(name);
  fchmod(slave, 0600);
  termios raw{};
  tcgetattr(slave, &raw);
  cfmakeraw(&raw);
  tcsetattr(slave, TCSANOW, &raw);
  std::string script =
      "cd " + place.inside + "; T=" + name + "; P=" + attack_program("") + "; " + attack;
  std::vector<std::string> argv{attack_program("terminal"), "on", name};
  std::vector<std::string> words{"/bin/bash", "-c", script};
  if (!cell.control())
    words = {installed("bin/stockade"),
             "exec",
             "--json",
             "--mode",
             cell.mode,
             "--backend",
             cell.backend,
             "--workspace",
             workspace_of(scratch),
             "--",
             script};
  argv.insert(argv.end(), words.begin(), words.end());
  run_program(argv, as_user(cell));
  bool got_through = through(master, slave);
  close(slave);
  close(master);
  return {got_through, ""};
}

bool typed(int, int slave) {
  int waiting = 0;
  ioctl(slave, FIONREAD, &waiting);
  return waiting > 0;
}

bool printed(int master, int) {
  char text[64];
  return read(master, text, sizeof text) > 0;
}

bool opened_up(int, int slave) {
  struct stat info {};
  return fstat(slave, &info) != 0 || (info.st_mode & 0777) != 0600;
}

// ---- a workspace that is swapped --------------------------------------------------------------

std::string script_call(int id, const std::string& command) {
  return nlohmann::json{{"id", id}, {"tool", "bash"}, {"arguments", {{"command", command}}}}
             .dump() +
         "\n";
}

// Many calls while the workspace, or its parent, changes places with a link to outside.
Outcome swapped(const Cell& cell, const std::string& scratch, bool parent) {
  Place place(scratch, parent ? "swap-parent" : "swap", cell.uid);
  std::string real = place.inside + "/real";
  std::string link = place.inside + "/link";
  std::string below = parent ? "/ws" : "";
  for (const std::string& made : {real, real + "/ws", place.outside + "/ws"}) {
    mkdir(made.c_str(), 0755);
    place.give(made);
  }
  if (symlink(place.outside.c_str(), link.c_str()) != 0) throw std::runtime_error("symlink");
  place.give(link);
  place.remember();
  // The workspace is resolved when the host starts; what is swapped is that path.
  std::string started = real + below + "/started";
  std::string calls = script_call(-1, "touch " + started);
  int count = cell.control() ? 40 : parent ? 100 : 200;
  for (int i = 0; i < count; ++i)
    calls += script_call(i, "echo x > " + real + below + "/escaped" + std::to_string(i));
  ProgramOptions options = as_user(cell);
  options.input = calls;
  options.timeout_ms = 110000;
  std::atomic<bool> ended{false};
  std::thread flipper([&] {
    wait_for([&] { return exists(started); });
    while (!ended) {
      syscall(SYS_renameat2, AT_FDCWD, real.c_str(), AT_FDCWD, link.c_str(), 2);
      usleep(static_cast<unsigned>(rand() % 700));
    }
  });
  std::vector<std::string> argv{
      installed("bin/stockade"), "run", "--workspace", real + below, "--cwd", "/"};
  if (cell.control())
    argv.insert(argv.end(), {"--mode", "danger-full-access"});
  else
    argv.insert(argv.end(), {"--mode", cell.mode, "--backend", cell.backend});
  argv.push_back("-");
  auto program = run_program(argv, options);
  ended = true;
  flipper.join();
  if (program.timed_out) throw std::runtime_error("the calls with a swapped workspace hang");
  return {place.changed(), ""};
}

// The directory that stands at /tmp changes places with a link between two calls.
Outcome swapped_tmp(const Cell& cell, const std::string& scratch) {
  Place place(scratch, "swap-tmp", cell.uid);
  place.remember();
  if (cell.control()) {
    control(cell, "ln -s " + place.outside + " " + place.inside + "/tmp; echo x > " + place.inside +
                      "/tmp/escaped");
    return {place.changed(), ""};
  }
  std::string before =
      "touch /tmp/first; for i in $(seq 200); do [ -e /tmp/go ] && break; "
      "sleep 0.05; done";
  ProgramOptions options = as_user(cell);
  options.input = script_call(1, before) + script_call(2, "echo x > /tmp/escaped");
  std::atomic<bool> swapped{false};
  std::thread swapper([&] {
    std::string area;
    wait_for([&] {
      for (const char* parent : {"/tmp", "/var/tmp"}) {
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(parent, ignored))
          if (exists(entry.path().string() + "/1/first")) area = entry.path();
      }
      return !area.empty();
    });
    if (area.empty()) return;
    swapped = rename((area + "/1").c_str(), (area + "/2").c_str()) == 0 &&
              symlink(place.outside.c_str(), (area + "/1").c_str()) == 0;
    write_file(area + "/2/go", "");
  });
  auto program = run_program({installed("bin/stockade"), "run", "--mode", cell.mode, "--backend",
                              cell.backend, "--workspace", workspace_of(scratch), "-"},
                             options);
  swapper.join();
  if (!swapped) throw std::runtime_error("the directory at /tmp was not found");
  return {place.changed(), ""};
}

// ---- mounts -----------------------------------------------------------------------------------

// The workspace is a mount, whose descriptor opens by handle any file of its file system.
Outcome handle_in_mount(const Cell& cell, const std::string& scratch) {
  Place place(scratch, "handle", cell.uid);
  place.bind(workspace_of(scratch), workspace_of(scratch));
  place.remember();
  std::string script = attack_program("handle") + " " + place.inside + " " + place.outside +
                       "/f; " + attack_program("handle") + " " + place.inside + " " +
                       place.outside + "/f userns";
  auto called = call(cell, workspace_of(scratch), script);
  return {place.changed(), called.enforcement()};
}

// The host mounts something while the command runs, on a host whose mounts are shared.
Outcome late_mount(const Cell& cell, const std::string& scratch) {
  Place place(scratch, "late", cell.uid);
  std::string mark = "stockade-late-" + std::to_string(getpid());
  std::string late = place.outside + "/d";
  std::string script = ": " + mark + "; for i in $(seq 200); do [ -e " + late +
                       "/there ] && break; sleep 0.05; done; echo x > " + late +
                       "/new; chmod 711 " + late + "/there";
  std::string verdict = scratch + "/late-verdict";
  pid_t host = fork();
  if (host == 0) {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr) != 0)
      _exit(3);
    std::thread mounter([&] {
      wait_for([&] { return !processes_with(": " + mark).empty(); });
      usleep(300'000);
      if (mount("tmpfs", late.c_str(), "tmpfs", 0, "mode=755") != 0) return;
      place.give(late);
      write_file(late + "/there", "x");
      place.give(late + "/there");
    });
    auto called = call(cell, workspace_of(scratch), script);
    mounter.join();
    struct stat info {};
    bool mounted = stat((late + "/there").c_str(), &info) == 0;
    bool through = exists(late + "/new") || (info.st_mode & 07777) == 0711;
    write_file(verdict, called.enforcement());
    umount2(late.c_str(), MNT_DETACH);
    std::_Exit(!mounted ? 3 : through ? 1 : 0);
  }
  int status = 0;
  waitpid(host, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 3)
    throw std::runtime_error("the late mount was not made");
  return {WEXITSTATUS(status) == 1, read_file(verdict)};
}

// "" when the file system is made and mounted; `in` is a program to run mount with.
std::string mount_btrfs(const std::string& image, const std::string& where,
                        const std::string& in = "") {
  auto made = run_program({"/bin/sh", "-c",
                           "PATH=$PATH:/usr/sbin:/sbin; truncate -s 128M " + image +
                               " && mkfs.btrfs -q -f " + image + " && " + in + " mount -o loop " +
                               image + " " + where});
  return made.status == 0 ? "" : made.err;
}

// On btrfs a subvolume is made by an order on a directory that is open for reading.
Outcome subvolume(const Cell& cell, const std::string& scratch) {
  Place place(scratch, "btrfs", cell.uid);
  std::string where = place.outside + "/d";
  if (auto error = mount_btrfs(scratch + "/btrfs.image", where); !error.empty())
    throw std::runtime_error("no btrfs: " + error);
  place.give(where);
  std::string script = attack_program("names") + " subvolume " + where + " new";
  auto called = call(cell, workspace_of(scratch), script);
  bool through = exists(where + "/new");
  umount2(where.c_str(), MNT_DETACH);
  return {through, called.enforcement()};
}

// What keeps this machine from mounting one: no tools, no such file system, no loop devices.
std::string no_btrfs() {
  static const std::string why = [] {
    Scratch scratch("/var/tmp");
    const std::string where = scratch / "mount";
    std::filesystem::create_directory(where);
    std::string error = mount_btrfs(scratch / "image", where, "unshare --mount");
    std::replace(error.begin(), error.end(), '\n', ' ');
    return error;
  }();
  return why;
}

bool has_btrfs(const Cell&) {
  return no_btrfs().empty();
}

// ---- what the operator adds -------------------------------------------------------------------

std::vector<std::string> with_config(const Cell& cell, const Place& place,
                                     const std::string& settings) {
  if (cell.control()) return {};
  std::string config = place.outside + "/config.json";
  write_file(config, R"({"plugins": [{"plugin": "sandbox", "config": {)" + settings +
                         R"(}}, {"plugin": "sandbox-local"}, {"plugin": "bash-sandbox"}]})");
  return {"--config", config};
}

// Everything that could change a repository's hooks and settings, or put others in their place.
Outcome protected_paths(const Cell& cell, const std::string& scratch) {
  Place place(scratch, "protected", cell.uid);
  std::string git = place.inside + "/p/.git";
  for (const std::string& made : {place.inside + "/p", git, git + "/hooks"}) {
    mkdir(made.c_str(), 0755);
    place.give(made);
  }
  for (const std::string& made : {git + "/config", git + "/hooks/h"}) {
    write_file(made, "untouched");
    place.give(made);
  }
  std::string before = snapshot(git + "/hooks") + snapshot(git + "/config");
  std::string script =
      "cd " + place.inside + "/p; P=" + attack_program("") +
      "\n"
      "echo x > .git/config; echo x >> /proc/self/root$PWD/.git/config; $P/names truncate "
      ".git/config\n"
      "touch .git/hooks/new; chmod 711 .git/hooks/h .git/hooks; touch -d @5 .git/config\n"
      "$P/metadata setxattr .git/config; $P/io_uring setxattr .git/config\n"
      "ln .git/config l; echo x >> l; ln .git/hooks/h m; echo x >> m; rm -f l m\n"
      "echo n > n; mv -f n .git/config; echo n > n; $P/names exchange n .git/config\n"
      "unshare -Urm sh -c 'umount -l .git/config .git/hooks; echo x > .git/config'\n"
      "rm -f .git/config; mv .git/hooks .git/gone; mkdir .git/hooks; touch .git/hooks/h\n"
      "mv .git gone; mkdir -p .git/hooks; touch .git/config; mv ../p ../gone; mkdir -p "
      "../p/.git/hooks; rm -rf " +
      place.inside + "/p; exit 0";
  auto called =
      call(cell, workspace_of(scratch), script,
           with_config(cell, place,
                       R"("protectedPaths": [")" + git + R"(/hooks", ")" + git + R"(/config"])"));
  if (!cell.control() && (!called.json.is_object() || called.json["outcome"] == "runner-failed"))
    throw std::runtime_error("the attack was not run: " + called.program.out);
  return {snapshot(git + "/hooks") + snapshot(git + "/config") != before, called.enforcement()};
}

// Everything that could read what is hidden.
Outcome hidden_paths(const Cell& cell, const std::string& scratch) {
  Place place(scratch, "hidden", cell.uid);
  std::string secret = "secret-" + std::to_string(getpid());
  for (const char* file : {"/f", "/d/x"}) {
    write_file(place.outside + file, secret);
    place.give(place.outside + file);
  }
  std::string script =
      "cd " + place.outside + "; P=" + attack_program("") + "; W=" + place.inside +
      "\n"
      "cat f d/x /proc/self/root$PWD/f /proc/$PPID/root$PWD/d/x; ln f $W/l; cat $W/l; mv f $W/m; "
      "cat $W/m\n"
      "unshare -Urm sh -c 'umount -l f d; cat f d/x; mount --bind . /mnt; cat /mnt/f /mnt/d/x'\n"
      "$P/detached_tree $PWD f; exit 0";
  auto called = call(cell, workspace_of(scratch), script,
                     with_config(cell, place,
                                 R"("hiddenPaths": [")" + place.outside + R"(/f", ")" +
                                     place.outside + R"(/d"])"));
  if (!cell.control() && (!called.json.is_object() || called.json["outcome"] == "runner-failed"))
    throw std::runtime_error("the attack was not run: " + called.program.out);
  return {called.program.out.find(secret) != std::string::npos, called.enforcement()};
}

bool has_view(const Cell& cell) {
  return cell.backend != "landlock";
}

bool has_writable_view(const Cell& cell) {
  return cell.writes() && cell.backend != "landlock";
}

bool writes_workspace(const Cell& cell) {
  return cell.writes();
}

std::string no_typing() {
  std::string setting = read_file("/proc/sys/dev/tty/legacy_tiocsti");
  return setting == "0\n" ? "dev.tty.legacy_tiocsti is 0 on this host" : "";
}

}  // namespace

std::vector<Special> special_attacks() {
  return {
      {"forge the runner's report", forge},
      {"kill the runner and the host", kill_host},
      {"the host's output is a file", output_file},
      {"100 daemons, the command ends",
       [](const Cell& cell, const std::string& scratch) {
         return survivors(cell, scratch, false);
       }},
      {"100 daemons, a timeout",
       [](const Cell& cell, const std::string& scratch) { return survivors(cell, scratch, true); }},
      {"type into the terminal",
       [](const Cell& cell, const std::string& scratch) {
         return on_terminal(cell, scratch, "$P/terminal inject; $P/terminal inject <$T", typed);
       },
       "", Attack::none, nullptr, no_typing},
      {"print on the terminal",
       [](const Cell& cell, const std::string& scratch) {
         return on_terminal(cell, scratch, "echo attacked > $T; echo attacked > /dev/tty", printed);
       }},
      {"open the terminal to others",
       [](const Cell& cell, const std::string& scratch) {
         return on_terminal(cell, scratch, "chmod 666 $T", opened_up);
       }},
      {"200 calls, the workspace swapped",
       [](const Cell& cell, const std::string& scratch) { return swapped(cell, scratch, false); },
       "", Attack::none, writes_workspace},
      {"100 calls, its parent swapped",
       [](const Cell& cell, const std::string& scratch) { return swapped(cell, scratch, true); },
       "", Attack::none, writes_workspace},
      {"the directory at /tmp swapped", swapped_tmp, "", Attack::none, has_writable_view},
      {"open_by_handle_at, the workspace a mount", handle_in_mount, "",
       Attack::root_only | Attack::mounts},
      {"change what is protected", protected_paths, "", Attack::none, has_writable_view},
      {"read what is hidden", hidden_paths, "", Attack::none, has_view},
      {"make a btrfs subvolume", subvolume, "", Attack::mounts, has_btrfs, no_btrfs},
      {"a mount that the host makes later", late_mount, "bwrap/*/*", Attack::mounts},
  };
}

}  // namespace stockade::test
