// SPDX-License-Identifier: MIT
// `stockade plugins` and `stockade schema`, for programs.
#include "tests/e2e/world.hpp"

namespace stockade::test {
namespace {

using nlohmann::json;

TEST_CASE("plugins: the tree as JSON and as a Mermaid graph") {
  World world("landlock", users().back());
  auto program = world.stockade({"plugins", "--json", "--backend", "landlock"});
  CHECK(program.status == 0);
  auto tree = json::parse(program.out);
  CHECK(tree["name"] == "root");
  std::map<std::string, json> by_name;
  for (const auto& child : tree["children"]) by_name[child["name"]] = child;
  CHECK(by_name["bash-sandbox"]["state"] == "active");
  CHECK(by_name["bash-sandbox"]["library"] ==
        installation() + "/lib/stockade/plugins/bash-sandbox.so");
  CHECK(by_name["bash-sandbox"]["needs"][0]["available"] == true);

  auto graph = world.stockade({"plugins", "--mermaid", "--backend", "landlock"});
  CHECK(graph.out.substr(0, 13) == "flowchart LR\n");
  CHECK_THAT(graph.out, ContainsSubstring("-->|\"shell/1\"|"));
  CHECK(world.stockade({"plugins", "--json", "--mermaid"}).status == 2);
}

TEST_CASE("plugins: what is missing is named") {
  World world("landlock", users().back());
  const std::string config = world.workspace() + "/config.json";
  write_file(config, R"({"plugins": [{"plugin": "tool-bash"}]})");
  auto program = world.stockade({"plugins", "--config", config});
  CHECK_THAT(program.out, ContainsSubstring("waits for shell/1: nothing provides it"));
}

std::string validated(const std::string& schema, const std::string& document) {
  const std::string script = R"(
import json, sys, jsonschema
schema, document = (json.loads(text) for text in sys.argv[1:])
jsonschema.Draft202012Validator.check_schema(schema)
print("; ".join(e.message for e in jsonschema.Draft202012Validator(schema).iter_errors(document)))
)";
  auto ran = run_program({"python3", "-c", script, schema, document});
  return ran.status == 0 ? ran.out.substr(0, ran.out.find('\n')) : "validator: " + ran.err;
}

TEST_CASE("schema: a plugin's own and that of the whole file guide an editor") {
  World world("landlock", users().back());
  auto plugin = world.stockade({"schema", "bash-sandbox"});
  REQUIRE(plugin.status == 0);
  auto schema = json::parse(plugin.out);
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["properties"]["timeoutMs"]["default"] == 120000);
  CHECK(validated(plugin.out, R"({"timeoutMs": 5})").empty());
  CHECK_FALSE(validated(plugin.out, R"({"timeoutms": 5})").empty());

  auto file = world.stockade({"schema"});
  REQUIRE(file.status == 0);
  CHECK(validated(file.out, R"({"$schema": "x", "plugins": [
    {"plugin": "sandbox", "config": {"mode": "workspace-write"}},
    {"id": "g", "group": [{"plugin": "bash-sandbox", "config": {"graceMs": 1}}]},
    {"plugin": "/opt/mine.so", "config": {"any": "thing"}}]})") == "");
  for (const char* bad :
       {R"({"plugins": [{"plugin": "sandbox", "config": {"mode": "yolo"}}]})",
        R"({"plugins": [{"group": [{"plugin": "bash-sandbox", "config": {"gracems": 1}}]}]})",
        R"({"plugins": [{"plugin": "sandbx"}]})", R"({"plugin": []})"}) {
    CAPTURE(bad);
    const auto verdict = validated(file.out, bad);
    CHECK_FALSE(verdict.empty());
    CHECK(verdict.find("validator:") == std::string::npos);
  }
  auto misspelt = world.stockade({"schema", "sandbox-locl"});
  CHECK(misspelt.status == 125);
  CHECK_THAT(misspelt.err, ContainsSubstring("did you mean \"sandbox-local\""));
}

}  // namespace
}  // namespace stockade::test
