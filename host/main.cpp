// SPDX-License-Identifier: MIT
// The command line of `stockade`. Reads it, and hands on to commands.hpp.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "framework/error.hpp"
#include "framework/version.hpp"
#include "host/commands.hpp"
#include "sandbox/policy.hpp"

namespace {

using namespace stockade;

// A CLI11 check that names the nearest right word.
auto one_of(std::vector<std::string> words) {
  return [words = std::move(words)](const std::string& given) {
    for (const auto& word : words)
      if (word == given) return std::string();
    return "unknown value \"" + given + "\"" + suggestion(given, words);
  };
}

void add_composition(CLI::App& command, CompositionOptions& options) {
  command
      .add_option("--mode", options.mode,
                  "read-only (default), workspace-write or danger-full-access")
      ->check(one_of({"read-only", "workspace-write", "danger-full-access"}));
  command.add_option("--workspace", options.workspace,
                     "directory that workspace-write may write (default: the current one)");
  command
      .add_option("--backend", options.backend,
                  "namespace, bwrap, landlock or seatbelt (default: the first that works)")
      ->check(one_of({"namespace", "bwrap", "landlock", "seatbelt"}));
  command.add_option("--config", options.config_file,
                     "config file instead of the built-in composition");
  command.add_flag("--watch", options.watch, "apply the config file again when it changes")
      ->needs("--config");
  command
      .add_option_function<std::string>(
          "--log-level",
          [&options](const std::string& level) {
            options.log_level = level == "debug"   ? LogLevel::debug
                                : level == "info"  ? LogLevel::info
                                : level == "error" ? LogLevel::error
                                : level == "off"   ? LogLevel::off
                                                   : LogLevel::warn;
          },
          "debug, info, warn (default), error or off; the log goes to standard error")
      ->check(one_of({"debug", "info", "warn", "error", "off"}));
}

}  // namespace

int main(int argc, char** argv) {
  // A descriptor 0 to 2 that is closed would be given to the loop's own files next.
  for (int fd = open("/dev/null", O_RDWR); fd >= 0; fd = open("/dev/null", O_RDWR))
    if (fd > 2) {
      close(fd);
      break;
    }
  CLI::App app("Runs bash commands behind a hard file-effect boundary.", "stockade");
  app.set_version_flag("--version", "stockade " STOCKADE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit status: the command's own; 128+n when a signal ended it; 124 on timeout; 125 when it "
      "was\n"
      "not run because the sandbox or stockade itself could not; 2 on bad usage.");

  ExecOptions exec;
  exec.composition.plugins = {};
  auto* exec_app = app.add_subcommand("exec", "run one command");
  add_composition(*exec_app, exec.composition);
  exec_app->add_option("--cwd", exec.composition.cwd, "working directory (default: the workspace)");
  exec_app
      ->add_option("--timeout-ms", exec.timeout_ms, "end the command after this many milliseconds")
      ->check(CLI::PositiveNumber);
  exec_app->add_flag("--json", exec.json, "print one JSON object instead of the command's streams");
  exec_app
      ->add_option("command", exec.command,
                   "after --: one word is bash text; several are a program and its arguments")
      ->required();

  RunOptions run;
  run.composition.plugins = {"approval", "approval-terminal", "sessions",
                             "jobs",     "tool-bash",         "script"};
  auto* run_app = app.add_subcommand("run", "run a script of tool calls, one JSON object a line");
  add_composition(*run_app, run.composition);
  auto* run_cwd = run_app->add_option("--cwd", run.composition.cwd,
                                      "working directory (default: the workspace)");
  run_app
      ->add_option("--session", run.session,
                   "resume this session, or begin it; its mode and directory are in its log")
      ->excludes(run_cwd);
  run_app->add_flag("--as-they-come", run.as_they_come,
                    "print results as calls end instead of in the order of the script");
  run_app->add_flag("--pretty", run.pretty, "print for a person instead of JSON lines");
  run_app->add_option("script", run.script, "a file, or - for standard input")->required();

  McpOptions mcp;
  mcp.composition.plugins = {"approval", "sessions", "jobs", "tool-bash", "mcp"};
  auto* mcp_app = app.add_subcommand(
      "mcp", "serve the bash tool to an MCP client on standard input and output");
  add_composition(*mcp_app, mcp.composition);
  auto* mcp_cwd = mcp_app->add_option("--cwd", mcp.composition.cwd,
                                      "working directory (default: the workspace)");
  mcp_app
      ->add_option("--session", mcp.session,
                   "resume this session, or begin it (default: a new one)")
      ->excludes(mcp_cwd);

  auto* http = mcp_app->add_option("--http", mcp.http_port,
                                   "serve Streamable HTTP on this port of 127.0.0.1 instead");
  mcp_app
      ->add_option(
          "--token-file", mcp.token_file,
          "file with the bearer token for --http (default: STOCKADE_MCP_TOKEN, else one is "
          "made up and printed)")
      ->needs(http);

  SessionsOptions sessions;
  auto* sessions_app = app.add_subcommand("sessions", "show the logs of sessions");
  sessions_app->add_option("--directory", sessions.directory,
                           "of the logs (default: below the user's state directory)");
  sessions_app->add_flag("--json", sessions.json, "print one JSON object a line");
  auto* list_app = sessions_app->add_subcommand("list", "all sessions (default)");
  auto* show_app = sessions_app->add_subcommand("show", "the events of one session");
  show_app->add_option("id", sessions.id, "its id")->required();
  for (auto* each : {list_app, show_app}) each->fallthrough();

  DoctorOptions doctor;
  auto* doctor_app = app.add_subcommand(
      "doctor", "run every backend and say which work here, and what to do about the others");
  doctor_app->add_option("--config", doctor.composition.config_file,
                         "config file instead of the built-in composition");
  doctor_app->add_flag("--json", doctor.json, "print one JSON object");

  PluginsOptions plugins;
  auto* plugins_app = app.add_subcommand("plugins", "show what is loaded and what waits for what");
  add_composition(*plugins_app, plugins.composition);
  bool plugins_json = false;
  bool plugins_mermaid = false;
  std::int64_t plugins_wait = plugins.wait.count();
  plugins_app->add_flag("--json", plugins_json, "print one JSON object");
  plugins_app->add_flag("--mermaid", plugins_mermaid, "print a Mermaid flow chart")
      ->excludes("--json");
  plugins_app->add_option("--wait-ms", plugins_wait, "how long to wait for plugins that load")
      ->check(CLI::Range(1, 600000));

  std::string schema;
  auto* schema_app = app.add_subcommand("schema", "print the JSON Schema of a config, for editors");
  schema_app->add_option("plugin", schema, "a plugin's name or file (default: the config file)");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    int status = app.exit(error);
    return status == 0 ? 0 : kExitUsage;
  }
  if (exec_app->parsed()) return exec_command(exec);
  if (run_app->parsed()) return run_script(run);
  if (sessions_app->parsed()) return show_sessions(sessions);
  if (mcp_app->parsed()) {
    if (mcp.http_port) mcp.composition.plugins.back() = "mcp-http";
    return serve_mcp(mcp);
  }
  if (doctor_app->parsed()) return examine_host(doctor);
  if (schema_app->parsed()) return print_schema(schema);
  plugins.wait = std::chrono::milliseconds(plugins_wait);
  plugins.format = plugins_json      ? PluginsFormat::json
                   : plugins_mermaid ? PluginsFormat::mermaid
                                     : PluginsFormat::text;
  return list_plugins(plugins);
}
