// SPDX-License-Identifier: MIT
// A plugin's shared object: copied, checked, mapped, and unmapped on a later turn of the loop than
// the last use of its code, which is then proved from the process's maps.
#pragma once

#include <memory>
#include <string>

#include "framework/api.hpp"
#include "framework/fiber.hpp"
#include "framework/loop.hpp"

namespace stockade {

// Reads the file's ELF headers. Throws Error `PLUGIN_UNUSABLE` naming the file when it is missing,
// no regular file, no shared object for this machine, or cut short: mapping a truncated library and
// touching the missing part would end the host with SIGBUS.
STOCKADE_API void check_library_file(const std::string& path);

// What became of a library that was opened.
struct STOCKADE_API LibraryStatus {
  enum class State {
    mapped,    // something still refers to its code
    unmapped,  // gone from /proc/self/maps
    pinned     // let go, and still there
  };
  std::string file;
  State state = State::mapped;
  std::string pin;                 // why it is pinned
  std::weak_ptr<const void> code;  // while it is mapped

  std::string explain() const;  // `… is unmapped`, or why not
};

// Opens a private copy of the file `path` (absolute), so that the file may be overwritten and
// opened again while the copy runs, and returns what it defines. The copy is a memory file;
// debuggers find it below /proc/PID/fd. `code` of the result keeps it mapped; the last reference
// may go inside the library's own code, since dlclose is posted to the loop.
//
// Throws Error `PLUGIN_UNUSABLE`, naming the file, also for a missing symbol, a missing library
// that it depends on, another ABI, a static constructor that throws (the library then stays mapped:
// its state is unknown) or prints (standard output belongs to the host's protocols).
STOCKADE_API PluginDefinition open_plugin(Loop& loop, const std::string& path);

// Where this installation keeps its plugins and its launcher (`<prefix>/lib/stockade`), found from
// the place that libstockade.so was loaded from, whatever PATH, the environment or the working
// directory say.
STOCKADE_API std::string installation_directory();
// libstockade.so itself, resolved.
STOCKADE_API std::string framework_library();

}  // namespace stockade
