// SPDX-License-Identifier: MIT
// The whole of a stream on disk, once it no longer fits in memory. Its bytes are written by libuv's
// threads, so that a slow disk does not hold up the loop; only creating the file happens on it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "framework/fd.hpp"
#include "framework/loop.hpp"

namespace stockade {

struct SpillLimits {
  std::uint64_t total_bytes = 1ULL << 30;  // of all files of one directory; the oldest make room
  bool keep = false;                       // leave the directory where it is at the end
};

// A private directory (0700) below /var/tmp: not below /tmp, which a sandbox may give to commands.
// Made when the first stream spills, locked while its host lives, and removed with its files when
// the last one who refers to it goes, unless it is to be kept.
class SpillDirectory {
 public:
  explicit SpillDirectory(Loop& loop, SpillLimits limits = {},
                          std::shared_ptr<const void> code = nullptr);
  ~SpillDirectory();
  SpillDirectory(const SpillDirectory&) = delete;
  SpillDirectory& operator=(const SpillDirectory&) = delete;

  // Removes, on a thread, the directories of this user's dead hosts that are older than a day.
  static void remove_stale(Loop& loop, std::shared_ptr<const void> code = nullptr);
  // The same at once; `base` is searched for directories of at least that age.
  static int remove_stale_in(const std::string& base, std::int64_t min_age_seconds);

  // A new file in it, created exclusively with mode 0600; on failure none, with `error` set. By
  // descriptor: a command whose workspace holds the directory may put another in its place.
  // Refused where the directory would lie in `workspace` ("": nowhere): a command that reads its
  // whole workspace would read what it writes, for ever.
  Fd create_file(std::string_view stream, const std::string& workspace, std::string& path,
                 std::string& error);
  // Of the file created last, until let_go().
  std::uint64_t last_file() const noexcept { return count_; }
  // How many of `wanted` bytes may be written to the file. Files that were let go of are removed,
  // oldest first, when the total leaves no room otherwise.
  std::uint64_t take(std::uint64_t file, std::uint64_t wanted);
  void let_go(std::uint64_t file) noexcept;
  // Keeps the library mapped that writes in flight call back into.
  const std::shared_ptr<const void>& code() const noexcept { return code_; }

 private:
  struct File {
    std::uint64_t id;
    std::string name;
    std::uint64_t bytes = 0;
    bool in_use = true;
  };
  Loop& loop_;
  SpillLimits limits_;
  Fd directory_;
  std::string path_;
  std::deque<File> files_;  // by id
  std::uint64_t used_ = 0;
  std::uint64_t count_ = 0;
  std::shared_ptr<const void> code_;
};

// One file. Failures (no space, no descriptor, a disk that hangs) end the spilling with a note and
// never the call.
class Spill {
 public:
  // `on_drained` is called on the loop each time everything that was given has been written, and
  // when the file has been closed.
  Spill(Loop& loop, SpillDirectory& directory, std::string_view stream,
        const std::string& workspace, std::uint64_t cap, std::function<void()> on_drained);
  ~Spill();  // what is being written is finished and the file closed
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  void write(std::string_view bytes);
  void close();    // after what was given; a file that cannot be closed is advertised no longer
  void abandon();  // what was given and is not on disk yet is given up, and noted
  bool closed() const noexcept;
  std::size_t pending() const noexcept;  // bytes given but not written
  std::optional<std::string> path() const;
  std::optional<std::string> note() const;

 private:
  struct State;
  SpillDirectory& directory_;
  std::uint64_t file_ = 0;
  std::shared_ptr<State> state_;
};

}  // namespace stockade
