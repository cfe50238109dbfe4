// SPDX-License-Identifier: MIT
// What the subcommands do, once the command line is read. Each returns the process's exit status.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/composition.hpp"

namespace stockade {

inline constexpr int kExitTimedOut = 124;
inline constexpr int kExitNotRun = 125;  // infrastructure failed; the command did not run
inline constexpr int kExitUsage = 2;

struct ExecOptions {
  CompositionOptions composition;
  std::optional<double> timeout_ms;
  bool json = false;
  std::vector<std::string> command;  // one word: bash text; several: a program and its arguments
};
// The command's status; 128+n when a signal ended it or the host; kExitTimedOut; kExitNotRun.
int exec_command(const ExecOptions& options);

struct RunOptions {
  CompositionOptions composition;
  std::string script;  // a file, or `-`
  bool pretty = false;
  bool as_they_come = false;  // results, instead of in the order of the script
  std::optional<std::string> session;
};
// 0 when every line had a result that is no error, or the one that it expected, else 1;
// kExitNotRun; 128+n for a signal to the host.
int run_script(const RunOptions& options);

struct McpOptions {
  CompositionOptions composition;
  std::optional<std::string> session;
  std::optional<std::uint16_t> http_port;  // Streamable HTTP on 127.0.0.1 instead; 0: any
  // Of the bearer token; absent: STOCKADE_MCP_TOKEN, else one is made up and told on standard
  // error.
  std::optional<std::string> token_file;
};
// Until the client goes away: 0; 128+n for a signal to the host; kExitNotRun.
int serve_mcp(const McpOptions& options);

struct DoctorOptions {
  CompositionOptions composition;
  bool json = false;
};
// 0 when a backend works with full enforcement, else 1; kExitNotRun.
int examine_host(const DoctorOptions& options);

struct SessionsOptions {
  std::optional<std::string> id;  // absent: a list of all
  std::optional<std::string> directory;
  bool json = false;
};
int show_sessions(const SessionsOptions& options);

enum class PluginsFormat { text, json, mermaid };
struct PluginsOptions {
  CompositionOptions composition;
  PluginsFormat format = PluginsFormat::text;
  std::chrono::milliseconds wait{10000};  // for plugins to come to rest
};
// 1 when they did not.
int list_plugins(const PluginsOptions& options);

// Of a plugin, by name or path, or ("") of a config file.
int print_schema(const std::string& plugin);

// Reports on stderr what kept a subcommand from starting.
int report_failure(const std::exception_ptr& error);

}  // namespace stockade
