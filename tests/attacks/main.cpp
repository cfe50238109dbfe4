// SPDX-License-Identifier: MIT
// test-attacks --prefix DIR [--backend NAME]... [--only TEXT]
//
// Runs every attack under each backend of the installation at DIR, in both modes, as root and as an
// unprivileged user (or as the one who runs it), beside an unconfined control that must succeed,
// and prints a table. Fails when an attack gets through that is not open by design, when one that
// is open by design turns out closed, and when a control fails.
//
// As root it lives in namespaces of its own, so that no control touches the host's mounts, names,
// /dev/null, /tmp, IPC objects or processes.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>

#include "tests/attacks/attack.hpp"

namespace stockade::test {

namespace {

constexpr uid_t kUnprivileged = 1000;

std::string prefix;
std::string programs;

std::string quote(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

bool matches(const std::string& patterns, const Cell& cell) {
  std::string wanted[] = {cell.backend, cell.mode, cell.uid == 0 ? "root" : "user"};
  std::size_t at = 0;
  while (at < patterns.size()) {
    std::size_t end = std::min(patterns.find(' ', at), patterns.size());
    std::string pattern = patterns.substr(at, end - at);
    bool all = true;
    for (const auto& part : wanted) {
      std::string word = pattern.substr(0, pattern.find('/'));
      pattern.erase(0, std::min(word.size() + 1, pattern.size()));
      all = all && (word == "*" || word == part);
    }
    if (all) return true;
    at = end + 1;
  }
  return false;
}

// ---- one column -------------------------------------------------------------------------------

struct Finding {
  bool through = false;
  std::string enforcement;
  std::string impossible;  // of a control: why
  std::string error;       // the harness could not do it
};

using Findings = std::map<std::string, Finding>;

std::string script_of(const Attack& attack, const Place& place, bool control) {
  std::string text = "L=$PPID; export L\n" + place.environment() + "cd $W\n";
  // Of an attack that wants to see what a command keeps that has given root up.
  if (!control) text += "export DROPPED='setpriv --reuid 12345 --regid 12345 --clear-groups'\n";
  return text + "timeout 20 bash -c " + quote(attack.script) + " </dev/null >/dev/null 2>&1\n";
}

std::unique_ptr<Place> prepare(const Attack& attack, const std::string& scratch, int number,
                               uid_t uid) {
  auto place = std::make_unique<Place>(scratch, std::to_string(number), uid);
  if (attack.flags & Attack::victim) place->victim.emplace(uid, place->outside);
  if (attack.prepare) attack.prepare(*place);
  place->remember();
  return place;
}

Finding judge(const Attack& attack, const Place& place, const std::string& enforcement) {
  Finding finding;
  finding.through = attack.through ? attack.through(place) : place.changed();
  finding.enforcement = enforcement;
  finding.impossible = read_file(place.inside + "/impossible");
  return finding;
}

void run_attacks(const std::vector<Attack>& attacks, const Cell& cell, const std::string& scratch,
                 Findings& findings) {
  std::vector<std::pair<const Attack*, std::unique_ptr<Place>>> batch;
  std::string script;
  std::string direct;
  int number = 0;
  bool prepared = geteuid() == 0;
  for (const Attack& attack : attacks) {
    ++number;
    if ((attack.flags & Attack::mounts) && !prepared) continue;
    if (attack.flags & Attack::alone) continue;
    batch.emplace_back(&attack, prepare(attack, scratch, number, cell.uid));
    std::string one = "(\n" + script_of(attack, *batch.back().second, cell.control()) + ")\n";
    (attack.flags & Attack::direct && cell.control() ? direct : script) += one;
  }
  std::string file = scratch + "/attacks.sh";
  write_file(file, script);
  auto called = call(cell, scratch + "/workspace", "bash " + file + "; echo attacked");
  if (called.json.is_null() || called.json["stdout"].dump().find("attacked") == std::string::npos)
    throw std::runtime_error("the attacks were not run: " + called.program.out.substr(0, 2000) +
                             called.program.err.substr(0, 2000));
  if (!direct.empty()) run_program({"/bin/bash", "-c", direct}, as_user(cell));
  for (auto& [attack, place] : batch)
    findings[attack->name] = judge(*attack, *place, called.enforcement());
  batch.clear();

  number = 0;
  for (const Attack& attack : attacks) {
    ++number;
    if (!(attack.flags & Attack::alone) || ((attack.flags & Attack::mounts) && !prepared)) continue;
    auto place = prepare(attack, scratch, number, cell.uid);
    std::string text = script_of(attack, *place, cell.control());
    if (cell.control() && attack.flags & Attack::direct) {
      run_program({"/bin/bash", "-c", text}, as_user(cell));
      findings[attack.name] = judge(attack, *place, "");
    } else {
      auto alone = call(cell, scratch + "/workspace", text);
      findings[attack.name] = judge(attack, *place, alone.enforcement());
    }
  }
}

void run_specials(const std::vector<Special>& specials, const Cell& cell,
                  const std::string& scratch, Findings& findings) {
  for (const Special& special : specials) {
    if ((special.flags & Attack::mounts) && geteuid() != 0) continue;
    if (!cell.control() && special.concerns && !special.concerns(cell)) continue;
    Finding& finding = findings[special.name];
    if (cell.control() && special.impossible) finding.impossible = special.impossible();
    if (!finding.impossible.empty()) continue;
    try {
      auto outcome = special.run(cell, scratch);
      finding.through = outcome.through;
      finding.enforcement = outcome.enforcement;
    } catch (const std::exception& error) {
      finding.error = error.what();
    }
  }
}

// ---- the table --------------------------------------------------------------------------------

struct Row {
  std::string name;
  std::string open;
  unsigned flags;
};

struct Table {
  std::vector<Row> rows;
  std::vector<Cell> cells;
  std::map<uid_t, Findings> controls;
  std::vector<Findings> findings;  // by cell
  std::vector<std::string> enforcement;
  std::vector<std::string> failures;
  std::vector<std::string> notes;

  std::string control(const Row& row, uid_t uid);
  std::string verdict(const Row& row, std::size_t cell);
  void print();
};

std::string user_name(uid_t uid) {
  return uid == 0 ? "root" : std::to_string(uid);
}

std::string Table::control(const Row& row, uid_t uid) {
  auto found = controls[uid].find(row.name);
  if (found == controls[uid].end()) {
    notes.push_back("n/a  " + row.name + ": only root can prepare it");
    return "n/a";
  }
  const Finding& finding = found->second;
  if (finding.through) return "ok";
  if ((row.flags & Attack::root_only) && uid != 0) return "n/a";
  if (!finding.impossible.empty()) {
    notes.push_back("n/a  " + row.name + ", " + user_name(uid) + ": " + finding.impossible);
    return "n/a";
  }
  failures.push_back(row.name + ", " + user_name(uid) + ": the control did not work" +
                     (finding.error.empty() ? "" : ": " + finding.error));
  return "FAILED";
}

std::string Table::verdict(const Row& row, std::size_t at) {
  const Cell& cell = cells[at];
  auto found = findings[at].find(row.name);
  if (found == findings[at].end()) return "";
  const Finding& finding = found->second;
  std::string where =
      row.name + ": " + cell.backend + ", " + cell.mode + ", " + user_name(cell.uid);
  if (!finding.error.empty()) {
    failures.push_back(where + ": " + finding.error);
    return "ERROR";
  }
  bool open = matches(row.open, cell);
  const std::string& said = finding.enforcement.empty() ? enforcement[at] : finding.enforcement;
  if (finding.through && open && row.flags & Attack::beyond) return "beyond";
  if (finding.through && open && row.flags & Attack::granted) return "granted";
  if (finding.through && open && said == "partial") return "open";
  if (finding.through) {
    failures.push_back(where + " (" + said + "): it got through");
    return "THROUGH";
  }
  if (open && controls[cell.uid][row.name].through) {
    failures.push_back(where + ": open by design, and closed; take it off the limits");
    return "CLOSED";
  }
  return "-";
}

void Table::print() {
  constexpr int kName = 48;
  constexpr int kColumn = 8;
  std::printf("%-*s", kName, "");
  for (std::size_t i = 0; i < controls.size(); ++i) std::printf("%-*s", kColumn, "control");
  for (const Cell& cell : cells) std::printf("%-*.*s", kColumn, kColumn, cell.backend.c_str());
  std::printf("\n%-*s", kName, "");
  for (const auto& user : controls) std::printf("%-*s", kColumn, user_name(user.first).c_str());
  for (const Cell& cell : cells)
    std::printf("%-*s", kColumn, ((cell.writes() ? "ww " : "ro ") + user_name(cell.uid)).c_str());
  std::printf("\n");
  for (const Row& row : rows) {
    std::printf("%-*s", kName, row.name.c_str());
    for (const auto& user : controls)
      std::printf("%-*s", kColumn, control(row, user.first).c_str());
    for (std::size_t i = 0; i < cells.size(); ++i)
      std::printf("%-*s", kColumn, verdict(row, i).c_str());
    std::printf("\n");
  }
  std::printf("%-*s", kName, "enforcement reported");
  for (std::size_t i = 0; i < controls.size(); ++i) std::printf("%-*s", kColumn, "");
  for (const auto& level : enforcement) std::printf("%-*s", kColumn, level.c_str());
  std::printf(
      "\n\n- held   open: where the backend says partial   granted: on a file that the mode grants "
      "  "
      "beyond: on no file   ok: the unconfined control succeeded   n/a: nobody can do it here\n"
      "docs/limits.md has every attack that is open, granted or beyond.\n");
  for (const auto& note : notes) std::printf("%s\n", note.c_str());
  for (const auto& failure : failures) std::printf("FAILED  %s\n", failure.c_str());
}

// ---- the harness ------------------------------------------------------------------------------

void must(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

// A machine of its own as far as an attack could tell; returns in the process that lives there.
void move_into_namespaces() {
  must(unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC) == 0, "unshare");
  pid_t inside = fork();
  must(inside >= 0, "fork");
  if (inside > 0) {
    int status = 0;
    while (waitpid(inside, &status, 0) < 0 && errno == EINTR) {
    }
    std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  must(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts");
  must(mount("proc", "/proc", "proc", 0, nullptr) == 0, "/proc");
  for (const char* directory : {"/tmp", "/dev/shm"})
    must(mount("tmpfs", directory, "tmpfs", 0, "mode=1777") == 0, directory);
  // A null device that may be spoilt.
  must(mknod("/tmp/null", S_IFCHR | 0666, makedev(1, 3)) == 0 && chmod("/tmp/null", 0666) == 0 &&
           mount("/tmp/null", "/dev/null", nullptr, MS_BIND, nullptr) == 0,
       "/dev/null");
}

int run(const Scratch& scratch, const std::vector<std::string>& backends, const std::string& only) {
  auto started = std::chrono::steady_clock::now();
  std::vector<Attack> attacks;
  for (const auto& part : {file_attacks(), metadata_attacks(), kernel_attacks()})
    for (const Attack& attack : part)
      if (std::string(attack.name).find(only) != std::string::npos) attacks.push_back(attack);
  std::vector<Special> specials;
  for (const Special& special : special_attacks())
    if (std::string(special.name).find(only) != std::string::npos) specials.push_back(special);

  Table table;
  for (const Attack& attack : attacks)
    table.rows.push_back({attack.name, attack.open, attack.flags});
  for (const Special& special : specials)
    table.rows.push_back({special.name, special.open, special.flags});

  std::vector<uid_t> users{geteuid()};
  if (geteuid() == 0) users.push_back(kUnprivileged);
  int number = 0;
  auto column = [&](const Cell& cell, Findings& findings) {
    std::string root = scratch / std::to_string(++number);
    { Place workspace(root, "none", cell.uid); }
    run_attacks(attacks, cell, root, findings);
    run_specials(specials, cell, root, findings);
  };
  for (uid_t uid : users) column({"", "danger-full-access", uid}, table.controls[uid]);
  for (const auto& backend : backends)
    for (const char* mode : {"read-only", "workspace-write"})
      for (uid_t uid : users) {
        table.cells.push_back({backend, mode, uid});
        table.findings.emplace_back();
        column(table.cells.back(), table.findings.back());
        auto quiet = call(table.cells.back(), scratch / std::to_string(number) + "/workspace", ":");
        table.enforcement.push_back(quiet.enforcement());
      }
  table.print();
  std::printf("%zu attacks, %zu failures, %.0f s\n", table.rows.size(), table.failures.size(),
              std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  return table.failures.empty() ? 0 : 1;
}

}  // namespace

std::string installed(const std::string& name) {
  return prefix + "/" + name;
}

std::string attack_program(const std::string& name) {
  return programs + "/" + name;
}

std::string Called::enforcement() const {
  if (!json.is_object() || !json.contains("sandbox")) return "";
  const auto& sandbox = json["sandbox"];
  return sandbox.is_object() ? sandbox.value("enforcement", "") : "";
}

ProgramOptions as_user(const Cell& cell) {
  ProgramOptions options;
  if (geteuid() == 0) options.uid = cell.uid;
  options.environment["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin";
  options.environment["HOME"] = "/var/tmp";
  options.timeout_ms = 110000;
  return options;
}

Called call(const Cell& cell, const std::string& workspace, const std::string& command,
            const std::vector<std::string>& options, const ProgramOptions& program) {
  std::vector<std::string> argv{
      installed("bin/stockade"), "exec", "--json", "--mode", cell.mode, "--workspace", workspace};
  if (!cell.control()) argv.insert(argv.end(), {"--backend", cell.backend});
  argv.insert(argv.end(), options.begin(), options.end());
  argv.insert(argv.end(), {"--", command});
  ProgramOptions how = program.environment.empty() ? as_user(cell) : program;
  how.cwd = workspace;
  Called called;
  called.program = run_program(argv, how);
  called.json = nlohmann::json::parse(called.program.out, nullptr, false);
  if (called.json.is_discarded()) called.json = nullptr;
  return called;
}

}  // namespace stockade::test

int main(int argc, char** argv) {
  using namespace stockade::test;
  std::vector<std::string> backends;
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string option = argv[i];
    if (option == "--prefix") prefix = argv[i + 1];
    if (option == "--prefix-file") prefix = read_file(argv[i + 1]);
    if (option == "--backend") backends.push_back(argv[i + 1]);
    if (option == "--only") only = argv[i + 1];
  }
  if (!prefix.empty() && prefix.back() == '\n') prefix.pop_back();
  if (prefix.empty()) {
    std::fprintf(stderr, "usage: test-attacks --prefix DIR [--backend NAME]... [--only TEXT]\n");
    return 2;
  }
  if (backends.empty()) backends = {"namespace", "bwrap", "landlock"};
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    // Before a /tmp of its own hides a build tree that lies below the host's.
    Scratch scratch("/var/tmp");
    programs = scratch / "programs";
    std::filesystem::copy(STOCKADE_ATTACK_PROGRAMS, programs);
    if (geteuid() == 0) move_into_namespaces();
    return run(scratch, backends, only);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "test-attacks: %s\n", error.what());
    return 1;
  }
}
