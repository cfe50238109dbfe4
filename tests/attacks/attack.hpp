// SPDX-License-Identifier: MIT
// What an attack is, and where it takes place. An attack is a shell text that a command inside
// runs; whether it got through is read from the host afterwards, never from what it says or
// returns.
#pragma once

#include <sys/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/program.hpp"
#include "tests/support/scratch.hpp"

namespace stockade::test {

// One column of the table; without a backend the control, which is not confined.
struct Cell {
  std::string backend;
  std::string mode;
  uid_t uid;

  bool control() const { return backend.empty(); }
  bool writes() const { return mode != "read-only"; }
};

std::string installed(const std::string& name);       // a file of the installation under test
std::string attack_program(const std::string& name);  // of programs/

// A process of the attacking user's, outside the sandbox: what it holds, and how it was.
class Victim {
 public:
  Victim(uid_t uid, const std::string& directory);
  ~Victim();
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  pid_t pid() const { return pid_; }
  std::string address() const;  // of a word in its memory
  bool alive() const;
  bool poked() const;        // that word is another
  bool rescheduled() const;  // limits, priority, processors or the kernel's choice of whom to kill

  bool pipe_changed() const;

  static constexpr int kPipe = 11;
  static constexpr int kDescriptor = 10;  // of the file `held` in its directory, to be written to

 private:
  std::string state() const;

  pid_t pid_ = -1;
  long* word_ = nullptr;
  std::string before_;
};

// What one attack finds: $O, a directory outside, full of what may be attacked, and $W, one in the
// workspace. Both belong to the attacking user.
class Place {
 public:
  Place(const std::string& root, const std::string& name, uid_t uid);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  const std::string outside;
  const std::string inside;
  const uid_t uid;
  std::optional<Victim> victim;
  std::function<bool()> holds;  // set by a preparation that has its own way to look

  std::function<void()> cleanup;

  void remember();       // how $O is
  bool changed() const;  // …and that it is different now

  void mount_tmpfs(const std::string& path);
  void bind(const std::string& what, const std::string& path);
  void give(const std::string& path) const;  // to the attacking user
  std::string environment() const;           // of the attack, as shell text

 private:
  std::string before_;
  std::vector<std::string> mounts_;
};

// Things, names, sizes, owners, modes and times of a tree, but no time of access.
std::string snapshot(const std::string& path);

struct Attack {
  const char* name;
  const char* script;
  // Cells `BACKEND/MODE/USER` in which it is open by design, each part a word or `*`, the user
  // `root` or `user`; `docs/limits.md` has a line for each.
  const char* open = "";
  enum : unsigned {
    none = 0,
    root_only = 1,  // unconfined, only root can do it
    direct = 2,     // the control runs without stockade, which itself closes what is attacked
    alone = 4,      // has a call of its own, since it would hurt the others of its batch
    victim = 8,
    mounts = 16,  // its preparation needs root
    // What gets through under `full`, since `full` is not about it: an effect on no file, or on a
    // file that the mode grants.
    beyond = 32,
    granted = 64,
  };
  unsigned flags = none;
  void (*prepare)(Place&) = nullptr;
  // Null: anything below $O changed.
  bool (*through)(const Place&) = nullptr;
};

// What one call came to.
struct Called {
  ProgramResult program;
  nlohmann::json json;  // null when it printed none

  std::string enforcement() const;
};
Called call(const Cell& cell, const std::string& workspace, const std::string& command,
            const std::vector<std::string>& options = {}, const ProgramOptions& program = {});
ProgramOptions as_user(const Cell& cell);

// An attack that needs a call, or a host, of its own.
struct Special {
  struct Outcome {
    bool through = false;
    std::string enforcement;  // "": that of the cell
  };
  const char* name;
  std::function<Outcome(const Cell&, const std::string& scratch)> run;
  const char* open = "";
  unsigned flags = Attack::none;
  bool (*concerns)(const Cell&) = nullptr;  // null: every cell
  std::string (*impossible)() = nullptr;    // why this host cannot do it even unconfined, or ""
};

std::vector<Attack> file_attacks();
std::vector<Attack> metadata_attacks();
std::vector<Attack> kernel_attacks();
std::vector<Special> special_attacks();

}  // namespace stockade::test
