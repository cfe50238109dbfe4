// SPDX-License-Identifier: MIT
// Durations, variants and rules of config structs, and the schema of all.
#include "framework/schema.hpp"

#include "framework/loader.hpp"
#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace stockade::test {
namespace {

using nlohmann::json;

enum class Colour { red, dark_blue };

struct Point {
  double x = 0;
  double y = 0;
};

struct Rich {
  std::chrono::milliseconds timeout_ms{1500};
  std::variant<bool, std::string, Point> target = false;
  std::vector<Colour> colours = std::vector<Colour>(1, Colour::dark_blue);
  std::map<std::string, Point> points{};
  std::optional<std::uint8_t> level{};
  std::string path = "/tmp";
  std::int64_t count = 3;
  std::vector<std::string> names = std::vector<std::string>(1, "a");
};

void rules(ConfigRules<Rich>& rules) {
  rules.range(&Rich::timeout_ms, 1, 60000)
      .describe(&Rich::timeout_ms, "how long to wait")
      .absolute_path(&Rich::path)
      .at_least(&Rich::count, 1)
      .range(&Rich::level, 1, 9)
      .not_empty(&Rich::names);
}

struct Tree2 {
  std::string name{};
  std::vector<Tree2> below{};
};

std::string issues_of(const json& document) {
  std::vector<ConfigIssue> issues;
  read_config<Rich>(document, issues);
  std::string text;
  for (const auto& issue : issues) text += issue.path + ": " + issue.message + "\n";
  return text;
}

TEST_CASE("config: a duration is a count of the unit in its name") {
  std::vector<ConfigIssue> issues;
  CHECK(read_config<Rich>(json{{"timeoutMs", 20}}, issues).timeout_ms ==
        std::chrono::milliseconds(20));
  CHECK(issues.empty());
  CHECK(issues_of({{"timeoutMs", "20"}}) ==
        "$.timeoutMs: expected a whole number that is not negative, found the string \"20\"\n");
  for (const json& bad : {json(-1), json(1.5), json(1e12), json(nullptr)})
    CHECK_FALSE(issues_of({{"timeoutMs", bad}}).empty());
}

TEST_CASE("config: a variant takes what one of its alternatives takes") {
  std::vector<ConfigIssue> issues;
  auto read = [&](const json& value) {
    return read_config<Rich>(json{{"target", value}}, issues).target;
  };
  CHECK(std::get<bool>(read(true)));
  CHECK(std::get<std::string>(read("x")) == "x");
  CHECK(std::get<Point>(read({{"y", 2}})).y == 2);
  CHECK(issues.empty());
  CHECK(issues_of({{"target", 5}}) ==
        "$.target: expected true or false or a string or an object, found the number 5\n");
  CHECK(issues_of({{"target", {{"z", 1}}}}) == "$.target.z: unknown key (known: x, y)\n");
}

TEST_CASE("config: rules name the range, the key and the value") {
  CHECK(issues_of({{"timeoutMs", 0}}) ==
        "$.timeoutMs: expected a number from 1 to 60000, found the number 0\n");
  CHECK(issues_of({{"path", "tmp"}}) ==
        "$.path: expected an absolute path, found the string \"tmp\"\n");
  CHECK(issues_of({{"count", -2}}) ==
        "$.count: expected a number of at least 1, found the number -2\n");
  CHECK(issues_of({{"level", 10}}) ==
        "$.level: expected a number from 1 to 9, found the number 10\n");
  CHECK(issues_of({{"level", nullptr}}).empty());
  CHECK(issues_of({{"names", json::array()}}) ==
        "$.names: expected something that is not empty, found an array\n");
  // A wrong type is told once, and all are told at once.
  CHECK(issues_of({{"timeoutMs", true}, {"path", 5}, {"count", 0}, {"counts", 0}}) ==
        "$.counts: unknown key (did you mean \"count\"?)\n"
        "$.timeoutMs: expected a whole number that is not negative, found true\n"
        "$.path: expected a string, found the number 5\n"
        "$.count: expected a number of at least 1, found the number 0\n");
}

TEST_CASE("schema: fields with their types, defaults and rules") {
  auto schema = schema_of<Rich>();
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["additionalProperties"] == false);
  const auto& fields = schema["properties"];
  CHECK(json::parse(fields["timeoutMs"].dump()) == json{{"type", "integer"},
                                                        {"minimum", 1},
                                                        {"maximum", 60000},
                                                        {"default", 1500},
                                                        {"description", "how long to wait"}});
  CHECK(fields["colours"]["items"]["enum"].dump() == R"(["red","dark-blue"])");
  CHECK(fields["colours"]["default"].dump() == R"(["dark-blue"])");
  CHECK(fields["path"]["pattern"] == "^/");
  CHECK(fields["target"]["anyOf"].size() == 3);
  CHECK(fields["points"]["additionalProperties"]["properties"]["x"]["type"] == "number");
  CHECK_FALSE(fields["level"].contains("default"));
}

TEST_CASE("schema: a type that contains itself is defined once and referred to") {
  auto schema = schema_of<Tree2>();
  CHECK(schema["$ref"] == "#/$defs/Tree2");
  CHECK(schema["$defs"]["Tree2"]["properties"]["below"]["items"]["$ref"] == "#/$defs/Tree2");
}

// What python3-jsonschema says of `document` under `schema`: "" for valid.
std::string validated(const nlohmann::ordered_json& schema, const json& document) {
  Scratch scratch;
  write_file(scratch / "schema.json", schema.dump());
  write_file(scratch / "document.json", document.dump());
  const std::string script = R"(
import json, sys, jsonschema
schema, document = (json.load(open(f)) for f in sys.argv[1:])
jsonschema.Draft202012Validator.check_schema(schema)
print("; ".join(e.message for e in jsonschema.Draft202012Validator(schema).iter_errors(document)))
)";
  auto ran =
      run_program({"python3", "-c", script, scratch / "schema.json", scratch / "document.json"});
  if (ran.status != 0) return "validator: " + ran.err;
  return ran.out.substr(0, ran.out.find('\n'));
}

TEST_CASE("schema: a validator accepts it and agrees with the reader") {
  struct Row {
    json document;
    bool good;
  };
  const std::vector<Row> rows{
      {json::object(), true},
      {{{"timeoutMs", 1}, {"target", "x"}, {"colours", {"red"}}, {"level", nullptr}}, true},
      {{{"target", {{"x", 1.5}}}, {"points", {{"a", {{"y", 2}}}}}}, true},
      {{{"timeoutMs", 0}}, false},
      {{{"timeoutMs", "1"}}, false},
      {{{"target", 5}}, false},
      {{{"colours", {"green"}}}, false},
      {{{"path", "x"}}, false},
      {{{"unknown", 1}}, false},
      {{{"level", 10}}, false},
  };
  for (const auto& row : rows) {
    INFO(row.document.dump());
    CHECK(issues_of(row.document).empty() == row.good);
    const auto verdict = validated(schema_of<Rich>(), row.document);
    INFO(verdict);
    CHECK(verdict.find("validator:") == std::string::npos);
    CHECK(verdict.empty() == row.good);
  }
  CHECK(validated(schema_of<LoaderConfig>(),
                  json::parse(R"({"plugins": [{"id": "g", "group": [{"plugin": "x",
                      "isolate": {"a/1": true, "b/1": "label"}}]}]})"))
            .empty());
  CHECK_FALSE(validated(schema_of<LoaderConfig>(),
                        json::parse(R"({"plugins": [{"group": [{"plugn": "x"}]}]})"))
                  .empty());
}

}  // namespace
}  // namespace stockade::test
