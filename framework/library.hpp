// SPDX-License-Identifier: MIT
// A plugin's shared object: checked before it is mapped, unmapped on a later turn of the loop than
// the last use of its code.
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

// Opens `path` (absolute) and returns what it defines. `code` of the result keeps it mapped; the
// last reference may go inside the library's own code, since dlclose is posted to the loop. Throws
// Error `PLUGIN_UNUSABLE`, naming the file, also for a missing symbol or another ABI.
STOCKADE_API PluginDefinition open_plugin(Loop& loop, const std::string& path);

// Where this installation keeps its plugins and its launcher (`<prefix>/lib/stockade`), found from
// the place that libstockade.so was loaded from, whatever PATH, the environment or the working
// directory say.
STOCKADE_API std::string installation_directory();
// libstockade.so itself, resolved.
STOCKADE_API std::string framework_library();

}  // namespace stockade
