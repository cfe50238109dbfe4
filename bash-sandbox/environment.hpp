// SPDX-License-Identifier: MIT
// The environment that a runner and its command get; pure.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stockade {

// From lowest to highest: `ambient` without the host's secrets (a name that holds KEY, PASSWORD,
// SECRET or TOKEN in any case), its own variables (STOCKADE_…), and what would run code in the
// runner or before the command (BASH_ENV, ENV, LD_…, GCONV_PATH, BASH_FUNC_…, and the shell options
// SHELLOPTS, BASHOPTS and PS4); then NO_COLOR=1 TERM=dumb PAGER=cat GIT_PAGER=cat; then
// `explicit_entries`, which may hold any name; then `managed`, the variables of
// ctx.shellEnvironment. Throws Error `ENVIRONMENT_INVALID` for an explicit name that is
// empty or holds `=`, for a NUL byte, and, when the call is confined, for a name that would run
// code in the runner, which starts outside the sandbox.
std::vector<std::string> build_environment(
    const std::vector<std::string>& ambient,
    const std::map<std::string, std::string>& explicit_entries, bool confined = true,
    const std::map<std::string, std::string>& managed = {});

// This process's own, as `NAME=value`.
std::vector<std::string> ambient_environment();

}  // namespace stockade
