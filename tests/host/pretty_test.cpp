// SPDX-License-Identifier: MIT
#include "host/pretty.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using namespace stockade;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

json call_of(const std::string& command) {
  return {{"tool", "bash"}, {"arguments", {{"command", command}}}};
}

ordered_json result_of(const std::string& outcome, const std::string& text = "") {
  return {{"id", "a"},
          {"content", {{{"type", "text"}, {"text", text}}}},
          {"structuredContent",
           {{"outcome", outcome},
            {"exitCode", 0},
            {"signal", nullptr},
            {"sandbox", {{"mode", "read-only"}, {"backend", "bwrap"}, {"enforcement", "full"}}},
            {"durationMs", 12}}},
          {"isError", false}};
}

}  // namespace

TEST_CASE("pretty: a call and its result as a person sees them") {
  CHECK(pretty_result(call_of("echo hi"), result_of("ok", "hi\nthere\n"), false) ==
        "[a] $ echo hi\n"
        "    ok  (read-only, bwrap, full, 12 ms)\n"
        "    | hi\n"
        "    | there\n"
        "\n");
}

TEST_CASE("pretty: a command of several lines is indented below its first") {
  CHECK_THAT(pretty_result(call_of("one\n  two\n"), result_of("ok"), false),
             Catch::Matchers::StartsWith("[a] $ one\n        two\n    ok"));
}

TEST_CASE("pretty: each outcome has words of its own") {
  struct Row {
    const char* outcome;
    const char* words;
  };
  for (const auto& row : {
           Row{"ok", "    ok  ("},
           Row{"failed", "    failed  ("},
           Row{"denied", "    DENIED by the sandbox  ("},
           Row{"timed-out", "    timed out  ("},
           Row{"aborted", "    aborted  ("},
           Row{"runner-failed", "    NOT RUN: the sandbox could not run it  ("},
       })
    CHECK_THAT(pretty_result(call_of("x"), result_of(row.outcome), false),
               ContainsSubstring(row.words));
}

TEST_CASE("pretty: an exit code or a signal is told where it is not 0") {
  auto result = result_of("failed");
  result["structuredContent"]["exitCode"] = 3;
  CHECK_THAT(pretty_result(call_of("x"), result, false),
             ContainsSubstring("failed, exit code 3  ("));
  result["structuredContent"]["exitCode"] = nullptr;
  result["structuredContent"]["signal"] = "SIGTERM";
  CHECK_THAT(pretty_result(call_of("x"), result, false), ContainsSubstring("failed, SIGTERM  ("));
}

TEST_CASE("pretty: facts that do not exist are left out") {
  auto result = result_of("ok");
  result["structuredContent"]["sandbox"] = {{"mode", "danger-full-access"}};
  CHECK_THAT(pretty_result(call_of("x"), result, false),
             ContainsSubstring("ok  (danger-full-access, 12 ms)"));
}

TEST_CASE("pretty: the answer of another tool is no bash call's outcome") {
  ordered_json result{{"id", 1},
                      {"content", {{{"type", "text"}, {"text", "ready"}}}},
                      {"structuredContent", {{"jobId", "bash-1"}, {"kind", "bash"}}},
                      {"isError", false}};
  ordered_json call{{"id", 1}, {"tool", "job_output"}, {"arguments", {{"jobId", "bash-1"}}}};
  CHECK(pretty_result(call, result, false) == "[1] \n    ok\n    | ready\n\n");
  result["isError"] = true;
  CHECK(pretty_result(call, result, false) == "[1] \n    error\n    | ready\n\n");
}

TEST_CASE("pretty: a line that is no call is shown by its number") {
  ordered_json result{{"id", nullptr},
                      {"content", {{{"type", "text"}, {"text", "Error: line 4: bad"}}}},
                      {"structuredContent", {{"error", {{"code", "SCRIPT_LINE_INVALID"}}}}},
                      {"isError", true},
                      {"line", 4}};
  CHECK(pretty_result(nullptr, result, false) ==
        "[line 4] \n    error: the line is no call\n    | Error: line 4: bad\n\n");
}

TEST_CASE("pretty: an id is shown as it was given") {
  auto result = result_of("ok");
  result["id"] = 1.5;
  CHECK_THAT(pretty_result(call_of("x"), result, false),
             Catch::Matchers::StartsWith("[1.5] $ x\n"));
}

TEST_CASE("pretty: control characters cannot rewrite what stands before them") {
  std::string evil =
      "a\x1b[2J\x1b]0;t\x07\rb\x08\x7f"
      "c";
  auto result = result_of("ok", evil);
  result["id"] = evil;
  std::string text = pretty_result(call_of(evil), result, false);
  for (char c : text) CHECK((c == '\n' || static_cast<unsigned char>(c) >= 0x20));
  CHECK(text.find('\x7f') == std::string::npos);
  CHECK_THAT(text, ContainsSubstring("    | a\\x1b[2J\\x1b]0;t\\x07\\x0db\\x08\\x7fc\n"));
  CHECK_THAT(text, ContainsSubstring("$ a\\x1b[2J"));
}

TEST_CASE("pretty: text of other languages and tabs stay as they are") {
  CHECK_THAT(pretty_result(call_of("x"), result_of("ok", "é\t😀"), false),
             ContainsSubstring("    | é\t😀\n"));
}

TEST_CASE("pretty: colours are there only where they are wanted") {
  auto plain = pretty_result(call_of("x"), result_of("ok", "text"), false);
  auto coloured = pretty_result(call_of("x"), result_of("ok", "text"), true);
  CHECK(plain.find('\033') == std::string::npos);
  CHECK_THAT(coloured, ContainsSubstring("\033[32mok\033[0m"));
  CHECK_THAT(pretty_result(call_of("x"), result_of("denied"), true),
             ContainsSubstring("\033[35mDENIED by the sandbox\033[0m"));
  std::string stripped;
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\033')
      i = coloured.find('m', i);
    else
      stripped += coloured[i];
  }
  CHECK(stripped == plain);
}

TEST_CASE("pretty: a C1 control and a newline in an id are made harmless") {
  auto result = result_of("ok",
                          "a\xC2\x9B"
                          "2Jb");
  result["id"] = "x\ny";
  std::string text = pretty_result(call_of("true"), result, false);
  CHECK_THAT(text, ContainsSubstring("a\\x9b2Jb"));
  CHECK_THAT(text, ContainsSubstring("[x y] "));
}
