// SPDX-License-Identifier: MIT
// From the text of a command to an argv of bash.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stockade {

// `bash -c -- TEXT`, so that a command that begins with a dash is a command and no option. The
// kernel takes at most 128 KiB in one argument; a longer text comes in pieces that bash joins
// again. Then, too, `$0` is `bash`, there are no positional parameters, standard input is the
// command's own and its exit status is the status.
std::vector<std::string> bash_command_line(const std::string& command);

// What an exec takes of arguments and environment together, in bytes, on this host and under this
// process's stack limit, less what a runner may need for itself.
std::size_t most_command_line_bytes();

// How much of it these use.
std::size_t command_line_bytes(const std::vector<std::string>& strings);

// `name` itself when it holds a slash; else the first executable file of that name in an absolute
// directory of this process's PATH. "" when there is none, with `error` set to ENOENT or EACCES.
std::string find_program(const std::string& name, int& error);

}  // namespace stockade
