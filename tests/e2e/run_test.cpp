// SPDX-License-Identifier: MIT
// `stockade run` and `stockade plugins`.
#include "tests/e2e/world.hpp"
#include "tests/support/json_lines.hpp"

using namespace stockade::test;

namespace {

std::string call(const std::string& id, const std::string& command) {
  return nlohmann::json{{"id", id}, {"tool", "bash"}, {"arguments", {{"command", command}}}}
             .dump() +
         "\n";
}

}  // namespace

BACKEND_TEST("a script gives one result a line in its order") {
  ProgramOptions options;
  options.input = call("a", "echo hello") + call("b", "echo x > f") +
                  call("c", "echo out; echo err >&2; exit 3");
  auto program = world.stockade({"run", "--backend", world.backend, "-"}, options);
  CHECK(program.status == 0);
  auto results = json_lines(program.out);
  REQUIRE(results.size() == 3);
  CHECK(results[0]["id"] == "a");
  CHECK(results[0]["content"][0]["type"] == "text");
  CHECK(results[0]["content"][0]["text"] == "hello\n");
  CHECK(results[0]["structuredContent"]["outcome"] == "ok");
  CHECK(results[0]["isError"] == false);
  CHECK(results[1]["id"] == "b");
  CHECK_THAT(
      results[1]["content"][0]["text"].get<std::string>(),
      ContainsSubstring("[sandbox: file access denied under read-only mode]\n[exit code: 1]"));
  CHECK(results[1]["structuredContent"]["outcome"] == "denied");
  CHECK(results[2]["content"][0]["text"] == "out\n[stderr]\nerr\n[exit code: 3]");
}

TEST_CASE("run: a bad line gets an error result that names it and the rest still runs") {
  World world("landlock", users().back());
  ProgramOptions options;
  options.input = "{not json\n" + call("ok1", "echo 1") +
                  R"({"id": 7, "tool": "bash", "argumnets": {}})"
                  "\n"
                  R"({"id": 8, "tool": "bsh", "arguments": {"command": "touch ran"}})"
                  "\n"
                  "\n"
                  R"({"id": 9, "tool": "bash", "arguments": {"comand": "touch ran"}})"
                  "\n"
                  "[1]\n" +
                  call("ok2", "echo 2");
  options.input.pop_back();  // the last line needs no newline
  auto program = world.stockade({"run", "--mode", "workspace-write", "-"}, options);
  CHECK(program.status == 1);
  auto results = json_lines(program.out);
  REQUIRE(results.size() == 7);
  auto text = [&](std::size_t i) { return results[i]["content"][0]["text"].get<std::string>(); };
  CHECK(results[0]["isError"] == true);
  CHECK(results[0]["id"].is_null());
  CHECK(results[0]["line"] == 1);
  CHECK_THAT(text(0), ContainsSubstring("line 1: ") && ContainsSubstring("column"));
  CHECK(text(1) == "1\n");
  CHECK(results[2]["id"] == 7);
  CHECK_THAT(text(2),
             ContainsSubstring("line 3: ") && ContainsSubstring("did you mean \"arguments\""));
  CHECK(results[3]["id"] == 8);
  CHECK_THAT(text(3),
             ContainsSubstring("no tool \"bsh\"") && ContainsSubstring("did you mean \"bash\""));
  CHECK(results[4]["id"] == 9);
  CHECK_THAT(text(4), ContainsSubstring("did you mean \"command\""));
  CHECK_THAT(text(5), ContainsSubstring("line 7: ") && ContainsSubstring("expected an object"));
  CHECK(text(6) == "2\n");
  CHECK_FALSE(exists(world.workspace() + "/ran"));
}

TEST_CASE("run: a script file and its pretty form") {
  World world("bwrap", users().back());
  std::string script = world.workspace() + "/script.jsonl";
  write_file(script, call("one", "printf 'a\\033[2Jb\\n'") + call("two", "echo x > f") + "oops\n");
  auto program = world.stockade({"run", "--pretty", script});
  CHECK(program.status == 1);
  CHECK_THAT(program.out, ContainsSubstring("[one] $ printf"));
  CHECK_THAT(program.out, ContainsSubstring("a\\x1b[2Jb"));
  CHECK_THAT(program.out, ContainsSubstring("DENIED by the sandbox"));
  CHECK_THAT(program.out, ContainsSubstring("[line 3]"));
  auto missing = world.stockade({"run", script + ".missing"});
  CHECK(missing.status == 125);
  CHECK_THAT(missing.err, ContainsSubstring(script + ".missing"));
}

TEST_CASE("run: the end of standard input ends the host") {
  World world("landlock", users().back());
  auto program = world.stockade({"run", "-"});
  CHECK(program.status == 0);
  CHECK(program.out.empty());
}

TEST_CASE("plugins: the tree shows states and services and what waits for what") {
  World world("bwrap", users().back());
  auto program = world.stockade({"plugins"});
  CHECK(program.status == 0);
  CHECK_THAT(program.out, ContainsSubstring("root  active  provides loader/1"));
  CHECK_THAT(program.out,
             ContainsSubstring("  sandbox-local  active  provides sandboxDoctor/1, sandbox/1\n"));
  CHECK_THAT(program.out, ContainsSubstring(
                              "  bash-sandbox  active  provides shellEnvironment/1, shell/1  needs "
                              "sandboxPolicy/1, sandbox/1\n"));
  CHECK_THAT(program.out,
             ContainsSubstring("calls: 0 running, at most 64, 0 queued, 0 in the background\n"));
  std::string config = world.workspace() + "/config.json";
  write_file(config,
             R"({"plugins": [{"plugin": "sandbox"}, {"id": "shell", "plugin": "bash-sandbox"}]})");
  auto waiting = world.stockade({"plugins", "--config", config});
  CHECK_THAT(waiting.out,
             ContainsSubstring("  shell  pending") && ContainsSubstring("waits for sandbox/1"));
}

TEST_CASE("run: a signal ends a host that waits for the next line") {
  World world("landlock", users().back());
  ProgramOptions options;
  if (geteuid() == 0) options.uid = world.uid;
  options.cwd = world.workspace();
  options.timeout_ms = 10000;
  auto program = run_program({"bash", "-c",
                              "sleep 8 | \"$1\" run --workspace \"$2\" - & sleep 1; "
                              "kill -TERM $(pgrep -f \"^$1 run --workspace $2\"); "
                              "wait $!; echo status=$?; kill %1 2>/dev/null; true",
                              "bash", world.prefix + "/bin/stockade", world.workspace()},
                             options);
  CHECK_FALSE(program.timed_out);
  CHECK(program.out == "status=143\n");
}

TEST_CASE("run: the script of examples is as it says") {
  for (uid_t uid : users()) {
    World world("bwrap", uid);
    ProgramOptions options;  // the user need not be able to read the source tree
    options.input = read_file(STOCKADE_EXAMPLES "/first-calls.jsonl");
    auto program = world.stockade({"run", "--pretty", "--mode", "workspace-write", "-"}, options);
    INFO(program.out << program.err);
    CHECK(program.status == 0);
    CHECK_THAT(program.out, ContainsSubstring("DENIED by the sandbox") &&
                                ContainsSubstring("what to do: this mode writes only the") &&
                                ContainsSubstring("An ordinary command sees the machine") &&
                                !ContainsSubstring("NOT AS EXPECTED"));
    CHECK_THAT(program.out, ContainsSubstring("12 calls: "));
  }
}

TEST_CASE("run: an expectation that is not met fails the script") {
  World world("landlock", users().back());
  ProgramOptions options;
  options.input = R"({"id": 1, "tool": "bash", "arguments": {"command": "exit 3"}, )"
                  R"("expect": {"outcome": "ok"}})"
                  "\n"
                  R"({"id": 2, "tool": "bash", "arguments": {"command": ""}, )"
                  R"("expect": {"error": "ARGUMENTS_INVALID"}})"
                  "\n";
  auto program = world.stockade({"run", "-"}, options);
  CHECK(program.status == 1);
  auto results = json_lines(program.out);
  CHECK(results.at(0)["expectation"]["mismatches"][0] ==
        "outcome: expected \"ok\", got \"failed\"");
  CHECK(results.at(1)["expectation"]["met"] == true);
}

TEST_CASE("run: a session keeps its mode and its directory and has a log") {
  World world("bwrap", users().back());
  ProgramOptions options;
  options.environment["XDG_STATE_HOME"] = world.outside();
  options.input = call("a", "echo x > f");
  auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "--session", "s1"});
    more.push_back("-");
    auto program = world.stockade(more, options);
    INFO(program.err);
    REQUIRE(program.status == 0);
    return json_lines(program.out).at(0)["structuredContent"]["outcome"].get<std::string>();
  };
  CHECK(run({}) == "denied");
  CHECK(run({"--mode", "workspace-write"}) == "ok");
  options.cwd = "/";
  CHECK(run({}) == "ok");  // its own mode, in its own directory
  CHECK(run({"--mode", "read-only"}) == "denied");
  CHECK(run({}) == "denied");

  auto list = world.stockade({"sessions", "--json"}, options);
  auto sessions = json_lines(list.out);
  REQUIRE(sessions.size() == 1);
  CHECK(sessions[0]["id"] == "s1");
  CHECK(sessions[0]["mode"] == "read-only");
  CHECK(sessions[0]["cwd"] == world.workspace());
  auto show = world.stockade({"sessions", "show", "s1", "--json"}, options);
  auto events = json_lines(show.out);
  CHECK(events.at(0)["type"] == "session/opened");
  CHECK(events.at(1)["type"] == "call/started");
  CHECK(events.at(1)["data"]["command"] == "echo x > f");
  CHECK(events.at(2)["data"]["denied"] == true);
  CHECK_THAT(world.stockade({"sessions"}, options).out, ContainsSubstring("s1  "));

  auto elsewhere =
      world.stockade({"run", "--session", "s1", "--workspace", world.outside(), "-"}, options);
  CHECK(elsewhere.status == 125);
  options.environment["XDG_STATE_HOME"] = world.workspace();
  options.cwd = world.workspace();
  auto unsafe = world.stockade({"run", "--session", "s2", "-"}, options);
  CHECK(unsafe.status == 125);
  CHECK_THAT(unsafe.err, ContainsSubstring("SESSION_UNSAFE"));
}
