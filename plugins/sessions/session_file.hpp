// SPDX-License-Identifier: MIT
// A session's log on disk: JSON Lines, appended one write at a time, so that a crash at any byte
// loses at most the line that was being written.
//
// {"seq":1,"time":"2026-11-30T21:00:00.000Z","type":"session/opened","data":{"id":…,"cwd":…}}
//
// The mode of a session is the last `sandbox/mode` in it, so whoever can write the file can widen
// the sandbox: it lies in a private directory and never within what a command may write.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/fd.hpp"
#include "plugins/session.hpp"

namespace stockade {

// `$XDG_STATE_HOME/stockade/sessions`, else the same below `~/.local/state`.
std::string default_session_directory();

// 1 to 64 of letters, digits, `.`, `_`, `-`, the first no dot; an id is part of a file's name.
bool is_session_id(const std::string& id);

// What a log says.
struct SessionRecord {
  Session session;
  std::vector<nlohmann::json> events;  // whole lines, with `seq`, `time`, `type`, `data`
  std::uint64_t torn_bytes = 0;        // of a last line that was not finished
};

// Absent for a file without one whole line. Throws Error `SESSION_INVALID` naming file and line for
// what is no log, or not the log of `id`: a damaged log must not widen anything.
std::optional<SessionRecord> read_session_log(const std::string& text, const std::string& id,
                                              const std::string& path);

// For showing; takes no lock. Throws Error `SESSION_UNKNOWN`, `SESSION_INVALID`.
SessionRecord load_session(const std::string& directory, const std::string& id);
std::vector<std::string> session_ids(const std::string& directory);  // sorted

// What was found when a log was opened.
struct SessionOpening {
  bool created = false;
  std::uint64_t torn_bytes = 0;  // that were cut off
};

class FileSession final : public SessionLog {
 public:
  // Opens the log of `id`, or begins it when the first event comes. `cwd` never changes once it is
  // in the log. Throws Error `SESSION_INVALID`, also for another `cwd`; `SESSION_BUSY` when another
  // host has it open; `SESSION_UNWRITABLE`; `SESSION_UNSAFE` for a directory that others can write
  // or that lies in one of `writable_roots`, the first of which is the workspace.
  FileSession(std::string directory, std::string id, std::optional<std::string> cwd,
              const std::vector<std::string>& writable_roots);

  const Session& session() const override { return session_; }
  void append(std::string type, nlohmann::ordered_json data) override;
  const SessionOpening& opening() const noexcept { return opening_; }
  const std::string& path() const noexcept { return path_; }

 private:
  void open_file(bool create);
  void write_event(const std::string& type, nlohmann::ordered_json data);

  std::string directory_;
  std::string path_;
  Session session_;
  SessionOpening opening_;
  Fd file_;  // none before the first event of a new session
  std::uint64_t size_ = 0;
  std::uint64_t last_seq_ = 0;
};

}  // namespace stockade
