// SPDX-License-Identifier: MIT
#include "framework/config.hpp"

#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

using nlohmann::json;

enum class Mode { read_only, workspace_write, full };

struct Limits {
  std::uint32_t timeout_ms = 1000;
  std::optional<std::string> note{};
};

struct Sample {
  Mode mode = Mode::read_only;
  bool verbose = false;
  double ratio = 0.5;
  std::string shell_path = "/bin/bash";
  std::vector<std::string> roots{};
  std::map<std::string, std::string> environment{};
  Limits limits{};
  std::optional<std::int64_t> offset{};
  json free_form{};
};

std::vector<ConfigIssue> issues_of(const json& document) {
  std::vector<ConfigIssue> issues;
  read_config<Sample>(document, issues);
  return issues;
}

// The only issue of the document, as `path: message`.
std::string issue_of(const json& document) {
  auto issues = issues_of(document);
  if (issues.size() != 1) return std::to_string(issues.size()) + " issues";
  return issues[0].path + ": " + issues[0].message;
}

template <class T>
struct One {
  T value{};
};

template <class T>
std::string integer_issue(const std::string& text) {
  std::vector<ConfigIssue> issues;
  auto read = read_config<One<T>>(json{{"value", json::parse(text)}}, issues);
  if (issues.empty()) return "read as " + std::to_string(read.value);
  return issues[0].message;
}

TEST_CASE("config: an empty object gives the defaults") {
  std::vector<ConfigIssue> issues;
  auto sample = read_config<Sample>(json::object(), issues);
  CHECK(issues.empty());
  CHECK(sample.mode == Mode::read_only);
  CHECK_FALSE(sample.verbose);
  CHECK(sample.ratio == 0.5);
  CHECK(sample.shell_path == "/bin/bash");
  CHECK(sample.limits.timeout_ms == 1000);
  CHECK_FALSE(sample.offset.has_value());
}

TEST_CASE("config: every kind of field is read") {
  auto sample = read_config<Sample>(json::parse(R"({
    "mode": "workspace-write", "verbose": true, "ratio": 2, "shellPath": "/bin/sh",
    "roots": ["/a", "/b"], "environment": {"A": "1", "snake_key": "2"},
    "limits": {"timeoutMs": 5, "note": "x"}, "offset": -7, "freeForm": {"any": [1]}})"),
                                    "test");
  CHECK(sample.mode == Mode::workspace_write);
  CHECK(sample.verbose);
  CHECK(sample.ratio == 2.0);
  CHECK(sample.shell_path == "/bin/sh");
  CHECK(sample.roots == std::vector<std::string>{"/a", "/b"});
  CHECK(sample.environment == std::map<std::string, std::string>{{"A", "1"}, {"snake_key", "2"}});
  CHECK(sample.limits.timeout_ms == 5);
  CHECK(sample.limits.note == "x");
  CHECK(sample.offset == -7);
  CHECK(sample.free_form == json{{"any", {1}}});
}

TEST_CASE("config: an unknown key is named with the nearest known one") {
  CHECK(issue_of({{"shelPath", "x"}}) == "$.shelPath: unknown key (did you mean \"shellPath\"?)");
  CHECK(issue_of({{"limits", {{"timeoutms", 1}}}}) ==
        "$.limits.timeoutms: unknown key (did you mean \"timeoutMs\"?)");
}

TEST_CASE("config: the spelling of C++ is no spelling of JSON") {
  CHECK(issue_of({{"shell_path", "x"}}) ==
        "$.shell_path: unknown key (did you mean \"shellPath\"?)");
}

TEST_CASE("config: an unknown key without a near one lists all") {
  auto issue = issue_of({{"limits", {{"zzzzzzzz", 1}}}});
  CHECK_THAT(issue, ContainsSubstring("timeoutMs") && ContainsSubstring("note"));
}

TEST_CASE("config: all issues are found at once") {
  auto issues = issues_of(json::parse(R"({
    "mode": "fast", "verbose": "yes", "roots": ["/a", 3], "environment": {"A": 1},
    "limits": {"timeoutMs": -1}, "nonsense": 0})"));
  std::map<std::string, std::string> found;
  for (const auto& issue : issues) found[issue.path] = issue.message;
  CHECK(issues.size() == 6);
  CHECK(found.count("$.mode"));
  CHECK(found.count("$.verbose"));
  CHECK(found.count("$.roots[1]"));
  CHECK(found.count("$.environment.A"));
  CHECK(found.count("$.limits.timeoutMs"));
  CHECK(found.count("$.nonsense"));
}

TEST_CASE("config: a throwing read lists every issue and its source") {
  auto failure = failure_of([] {
    read_config<Sample>(json{{"verbose", 1}, {"ratio", "x"}}, "entry \"shell\"", "$.config");
  });
  CHECK(failure.code == "CONFIG_INVALID");
  CHECK_THAT(failure.text, ContainsSubstring("entry \"shell\": invalid config:"));
  CHECK_THAT(
      failure.text,
      ContainsSubstring("\n  - $.config.verbose: expected true or false, found the number 1"));
  CHECK_THAT(failure.text,
             ContainsSubstring("\n  - $.config.ratio: expected a number, found the string \"x\""));
  CHECK(failure.operand == "$.config.verbose");
}

TEST_CASE("config: no issue throws nothing") {
  CHECK_NOTHROW(throw_config_issues("source", {}));
  CHECK_NOTHROW(read_config<Sample>(json::object(), "source"));
}

TEST_CASE("config: a wrong type tells what was expected and what was found") {
  CHECK(issue_of({{"verbose", nullptr}}) == "$.verbose: expected true or false, found null");
  CHECK(issue_of({{"shellPath", true}}) == "$.shellPath: expected a string, found true");
  CHECK(issue_of({{"roots", "/a"}}) == "$.roots: expected an array, found the string \"/a\"");
  CHECK(issue_of({{"environment", json::array()}}) ==
        "$.environment: expected an object, found an array");
  CHECK(issue_of({{"limits", 5}}) == "$.limits: expected an object, found the number 5");
  CHECK(issue_of(json::array()) == "$: expected an object, found an array");
  CHECK(issue_of(nullptr) == "$: expected an object, found null");
}

TEST_CASE("config: a long value is cut in the message") {
  auto issue = issue_of({{"verbose", std::string(500, 'x')}});
  CHECK(issue.size() < 150);
  CHECK_THAT(issue, ContainsSubstring("..."));
}

TEST_CASE("config: an enum is one of its names") {
  CHECK(read_config<Sample>(json{{"mode", "full"}}, "test").mode == Mode::full);
  CHECK(issue_of({{"mode", "workspace_write"}}) ==
        "$.mode: expected one of read-only, workspace-write, full, found the string "
        "\"workspace_write\" (did you mean \"workspace-write\"?)");
  CHECK(issue_of({{"mode", 1}}) ==
        "$.mode: expected one of read-only, workspace-write, full, found the number 1");
}

TEST_CASE("config: null empties an optional field") {
  auto sample =
      read_config<Sample>(json::parse(R"({"offset": null, "limits": {"note": null}})"), "t");
  CHECK_FALSE(sample.offset.has_value());
  CHECK_FALSE(sample.limits.note.has_value());
  CHECK(issue_of({{"offset", "x"}}) == "$.offset: expected a whole number, found the string \"x\"");
}

std::map<std::string, int> default_map() {
  return {{"a", 1}};
}

struct Filled {
  std::vector<int> list = std::vector<int>(2, 7);
  std::map<std::string, int> map = default_map();
};

TEST_CASE("config: a given list or map replaces the default one") {
  std::vector<ConfigIssue> issues;
  auto kept = read_config<Filled>(json::object(), issues);
  auto replaced = read_config<Filled>(json::parse(R"({"list": [3], "map": {"b": 2}})"), issues);
  CHECK(issues.empty());
  CHECK(kept.list == std::vector<int>{7, 7});
  CHECK(kept.map == default_map());
  CHECK(replaced.list == std::vector<int>{3});
  CHECK(replaced.map == std::map<std::string, int>{{"b", 2}});
}

TEST_CASE("config: a list of objects reports the index of the bad one") {
  struct Rows {
    std::vector<Limits> rows{};
  };
  std::vector<ConfigIssue> issues;
  auto rows = read_config<Rows>(json::parse(R"({"rows": [{}, {"timeoutMs": "x"}]})"), issues);
  REQUIRE(issues.size() == 1);
  CHECK(issues[0].path == "$.rows[1].timeoutMs");
  CHECK(rows.rows.size() == 2);
}

TEST_CASE("config: integers keep to the range of their type") {
  CHECK(integer_issue<std::uint8_t>("255") == "read as 255");
  CHECK_THAT(integer_issue<std::uint8_t>("256"), ContainsSubstring("found the number 256"));
  CHECK(integer_issue<std::int8_t>("-128") == "read as -128");
  CHECK_THAT(integer_issue<std::int8_t>("-129"), ContainsSubstring("found the number -129"));
  CHECK_THAT(integer_issue<std::int8_t>("128"), ContainsSubstring("found the number 128"));
  CHECK(integer_issue<std::int32_t>("2147483647") == "read as 2147483647");
  CHECK_THAT(integer_issue<std::int32_t>("2147483648"), ContainsSubstring("found the number"));
  CHECK(integer_issue<std::int64_t>("-9223372036854775808") == "read as -9223372036854775808");
  CHECK_THAT(integer_issue<std::int64_t>("9223372036854775808"), ContainsSubstring("found"));
  CHECK(integer_issue<std::uint64_t>("18446744073709551615") == "read as 18446744073709551615");
  CHECK_THAT(integer_issue<std::uint64_t>("18446744073709551616"), ContainsSubstring("found"));
}

TEST_CASE("config: a number made in code is judged by its value and not by its sign type") {
  std::vector<ConfigIssue> issues;
  CHECK(read_config<One<std::uint32_t>>(json{{"value", int{4}}}, issues).value == 4);
  CHECK(read_config<One<std::int8_t>>(json{{"value", unsigned{4}}}, issues).value == 4);
  CHECK(issues.empty());
  read_config<One<std::int8_t>>(json{{"value", int{300}}}, issues);
  read_config<One<std::uint8_t>>(json{{"value", int{300}}}, issues);
  CHECK(issues.size() == 2);
}

TEST_CASE("config: a negative number is none for an unsigned field") {
  CHECK(integer_issue<std::uint32_t>("-1") ==
        "expected a whole number that is not negative, found the number -1");
  CHECK(integer_issue<std::uint64_t>("-1") ==
        "expected a whole number that is not negative, found the number -1");
}

TEST_CASE("config: a fraction or a power of ten is no 32-bit number") {
  CHECK(integer_issue<std::int32_t>("1.5") == "expected a whole number, found the number 1.5");
  CHECK_THAT(integer_issue<std::int32_t>("1e12"), ContainsSubstring("expected a whole number"));
  CHECK_THAT(integer_issue<std::uint32_t>("1e12"), ContainsSubstring("expected a whole number"));
  CHECK_THAT(integer_issue<std::uint32_t>("1000000000000"), ContainsSubstring("found the number"));
}

TEST_CASE("config: true is no number and a number is no bool") {
  CHECK(integer_issue<std::int32_t>("true") == "expected a whole number, found true");
  CHECK(issue_of({{"ratio", true}}) == "$.ratio: expected a number, found true");
  CHECK(issue_of({{"verbose", 0}}) == "$.verbose: expected true or false, found the number 0");
}

Failure parse_failure(std::string_view text) {
  return failure_of([text] { parse_config(text, "stockade.json"); });
}

TEST_CASE("config: a document is parsed") {
  CHECK(parse_config(" {\"a\": [1, null]}\n", "s") == json{{"a", {1, nullptr}}});
}

TEST_CASE("config: malformed JSON is an error with line and column") {
  auto failure = parse_failure("{\n  \"a\": 1,\n  \"b\": }\n");
  CHECK(failure.code == "CONFIG_INVALID");
  CHECK(failure.operand == "stockade.json");
  CHECK_THAT(failure.text, ContainsSubstring("stockade.json: malformed JSON at line 3, column 8"));
}

TEST_CASE("config: the position counts from one") {
  CHECK_THAT(parse_failure("x").text, ContainsSubstring("line 1, column 1"));
  CHECK_THAT(parse_failure("\nx").text, ContainsSubstring("line 2, column 1"));
}

TEST_CASE("config: malformed documents of all sorts are refused") {
  auto document = GENERATE(as<std::string>{}, "{", "{} {}", "{\"a\": 1,}", "[1, 2", "{'a': 1}",
                           "{\"a\": nul}", "{\"a\": 01}", "{\"a\": \"\x01\"}", "{\"a\": \"\xff\"}",
                           "// no comments\n{}", "{\"a\": NaN}");
  INFO(document);
  auto failure = parse_failure(document);
  CHECK(failure.code == "CONFIG_INVALID");
  CHECK_THAT(failure.text, ContainsSubstring("malformed JSON at line "));
}

TEST_CASE("config: the reason survives a semicolon in the document") {
  CHECK_THAT(parse_failure("{\"a\": \"b; c").text, ContainsSubstring("missing closing quote"));
}

TEST_CASE("config: a number beyond all types is refused") {
  auto failure = parse_failure("{\"a\": 1e999}");
  CHECK(failure.code == "CONFIG_INVALID");
  CHECK_THAT(failure.text, ContainsSubstring("1e999"));
}

TEST_CASE("config: a duplicate key is refused and named") {
  auto failure = parse_failure(R"({"a": 1, "b": {"c": 1, "c": 2}})");
  CHECK(failure.code == "CONFIG_INVALID");
  CHECK_THAT(failure.text, ContainsSubstring("\"c\"") && ContainsSubstring("stockade.json"));
  CHECK(parse_failure("{\"a\": 1, \"\\u0061\": 2}").code == "CONFIG_INVALID");
}

TEST_CASE("config: equal keys of different objects are no duplicates") {
  CHECK_NOTHROW(parse_config(R"({"a": {"a": [{"a": 1}, {"a": 2}]}, "b": {"a": 1}})", "s"));
}

TEST_CASE("config: a byte order mark is refused by name") {
  auto failure = parse_failure("\xEF\xBB\xBF{}");
  CHECK(failure.code == "CONFIG_INVALID");
  CHECK_THAT(failure.text, ContainsSubstring("byte order mark"));
}

TEST_CASE("config: an empty document is refused as such") {
  auto document = GENERATE(as<std::string>{}, "", " ", "\n\t\r\n");
  auto failure = parse_failure(document);
  CHECK(failure.code == "CONFIG_INVALID");
  CHECK_THAT(failure.text, ContainsSubstring("is empty"));
}

}  // namespace
}  // namespace stockade::test

TEST_CASE("config: a document nested too deep is refused before it can overflow the stack") {
  auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK_NOTHROW(stockade::parse_config(nested(64), "deep"));
  for (std::size_t depth : {std::size_t{66}, std::size_t{200000}})
    CHECK_THROWS_WITH(stockade::parse_config(nested(depth), "deep"),
                      ContainsSubstring("nested deeper"));
}
