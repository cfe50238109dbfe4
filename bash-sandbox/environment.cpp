// SPDX-License-Identifier: MIT
#include "bash-sandbox/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "framework/error.hpp"

namespace stockade {

namespace {

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

bool runs_code(std::string_view name) {
  if (name.starts_with("LD_") || name.starts_with("BASH_FUNC_")) return true;
  for (const char* hook :
       {"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "GLIBC_TUNABLES", "GCONV_PATH"})
    if (name == hook) return true;
  return false;
}

bool dropped(std::string_view name) {
  const std::string folded = upper(name);
  for (const char* secret : {"KEY", "PASSWORD", "SECRET", "TOKEN"})
    if (folded.find(secret) != std::string::npos) return true;
  return folded.starts_with("STOCKADE_") || runs_code(name);
}

}  // namespace

std::vector<std::string> build_environment(
    const std::vector<std::string>& ambient,
    const std::map<std::string, std::string>& explicit_entries, bool confined,
    const std::map<std::string, std::string>& managed) {
  std::map<std::string_view, std::string_view> merged;
  for (const std::string_view entry : ambient) {
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const auto name = entry.substr(0, equals);
    if (!dropped(name)) merged[name] = entry.substr(equals + 1);
  }
  merged["NO_COLOR"] = "1";
  merged["TERM"] = "dumb";
  merged["PAGER"] = "cat";
  merged["GIT_PAGER"] = "cat";
  for (const auto& [name, value] : explicit_entries) {
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos ||
        value.find('\0') != std::string::npos)
      throw Error("ENVIRONMENT_INVALID",
                  "the environment entry \"" + name.substr(0, name.find('\0')) +
                      "\" is refused: a name must not be empty or hold `=`, neither may hold a NUL "
                      "byte",
                  name);
    if (confined && runs_code(name))
      throw Error("ENVIRONMENT_INVALID",
                  "the environment entry \"" + name +
                      "\" is refused: the sandbox's runner would read it before the sandbox "
                      "exists; set it in "
                      "the command",
                  name);
    merged[name] = value;
  }
  for (const auto& [name, value] : managed) merged[name] = value;
  std::vector<std::string> block;
  block.reserve(merged.size());
  for (const auto& [name, value] : merged) {
    std::string& entry = block.emplace_back();
    entry.reserve(name.size() + 1 + value.size());
    entry.append(name).append("=").append(value);
  }
  return block;
}

std::vector<std::string> ambient_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry && *entry; ++entry) entries.emplace_back(*entry);
  return entries;
}

}  // namespace stockade
