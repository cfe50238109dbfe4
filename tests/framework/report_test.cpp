// SPDX-License-Identifier: MIT
#include "framework/report.hpp"

#include <nlohmann/json.hpp>

#include "framework/context.hpp"
#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

using nlohmann::json;

struct Thing {};

PluginDefinition link(std::string name, std::vector<std::string> needs, std::string provides) {
  auto definition =
      plugin(std::move(name), std::move(needs), [provides](const Context& c, const json&) {
        c.provide_as<Thing>(provides, std::make_shared<Thing>());
      });
  definition.provides = {provides};
  return definition;
}

Task<> forever(Completion<> never) {
  co_await never;
}

TEST_CASE("report: what runs, what it provides and who uses it") {
  Tree tree;
  tree.root.plugin(link("first", {}, "a/1"), {});
  tree.root.plugin(link("second", {"a/1"}, "b/1"), {});
  tree.loop.drain();
  const auto report = report_of(*tree.root.fiber());
  CHECK(report_text(report) ==
        "root  active\n"
        "  first  active  provides a/1\n"
        "  second  active  provides b/1  needs a/1\n");
  CHECK(report_json(report)["children"][1].dump() ==
        R"({"name":"second","state":"active","provides":["b/1"],)"
        R"("needs":[{"service":"a/1","available":true,"provider":"first"}]})");
  CHECK_THAT(report_mermaid(report), ContainsSubstring("n1[\"first<br>active\"]") &&
                                         ContainsSubstring("n1 -->|\"a/1\"| n2"));
  CHECK(waiting_rings(report).empty());
}

TEST_CASE("report: a service that nobody provides") {
  Tree tree;
  tree.root.plugin(link("user", {"a/1"}, "b/1"), {});
  tree.loop.drain();
  const auto report = report_of(*tree.root.fiber());
  CHECK_THAT(report_text(report), ContainsSubstring("  user  pending  needs a/1\n"
                                                    "      waits for a/1: nothing provides it\n"));
  CHECK_THAT(report_mermaid(report),
             ContainsSubstring("a/1<br>missing") && ContainsSubstring("-.->|\"a/1\"|"));
}

TEST_CASE("report: a ring of plugins that wait for each other") {
  Tree tree;
  tree.root.plugin(link("egg", {"hen/1"}, "egg/1"), {});
  tree.root.plugin(link("hen", {"egg/1"}, "hen/1"), {});
  tree.root.plugin(link("farmer", {"egg/1"}, "farm/1"), {});
  tree.loop.drain();
  const auto report = report_of(*tree.root.fiber());
  CHECK(waiting_rings(report) == std::vector<Trace>{{"egg", "hen"}});
  CHECK_THAT(report_text(report),
             ContainsSubstring("a ring: egg waits for hen waits for egg\n") &&
                 ContainsSubstring("waits for hen/1: hen, which provides it, is pending"));
  CHECK(report_json(report)["rings"].dump() == R"([["egg","hen"]])");
}

TEST_CASE("report: a provider that does not finish loading") {
  Tree tree;
  Completion<> gate(tree.loop);
  PluginDefinition stuck;
  stuck.name = "stuck";
  stuck.apply = [&](Context c, const json&) {
    c.provide_as<Thing>("a/1", std::make_shared<Thing>());
    return forever(gate);
  };
  tree.root.plugin(stuck, {});
  tree.root.plugin(link("user", {"a/1"}, "b/1"), {});
  tree.loop.drain();
  CHECK_THAT(report_text(report_of(*tree.root.fiber())),
             ContainsSubstring("  stuck  loading  provides a/1\n") &&
                 ContainsSubstring("waits for a/1: its provider stuck is loading"));
  gate.settle();
}

TEST_CASE("report: a provider that is out of reach, says no, or failed") {
  Tree tree;
  tree.root.isolate("a/1").plugin(link("apart", {}, "a/1"), {});
  tree.root.provide_as<Thing>("b/1", std::make_shared<Thing>(), [] { return false; });
  tree.root.plugin(
      plugin("broken", {}, [](const Context&, const json&) { throw std::runtime_error("no way"); }),
      {});
  tree.root.plugin(link("user", {"a/1", "b/1"}, "c/1"), {});
  tree.loop.drain();
  const auto text = report_text(report_of(*tree.root.fiber()));
  CHECK_THAT(text, ContainsSubstring("waits for a/1: apart provides it, but is isolated") &&
                       ContainsSubstring("its provider root says that it is not available") &&
                       ContainsSubstring("  broken  failed  no way\n"));
}

}  // namespace
}  // namespace stockade::test
