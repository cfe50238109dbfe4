// SPDX-License-Identifier: MIT
#include "framework/fields.hpp"

#include <map>
#include <optional>
#include <vector>

#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

enum class Colour { red, dark_green, blue };
enum class Sparse { first = 1, third = 3, last = 15, beyond = 16 };

struct Inner {
  int depth;
};

struct Everything {
  int x;
  std::string probe_timeout_ms;
  std::optional<double> maybe;
  std::vector<Inner> list;
  std::map<std::string, int> by_name;
  Colour colour;
  Inner inner;
  bool value;
  const char* pointer;
};

struct Empty {};

TEST_CASE("fields: names are those of the declaration in its order") {
  const auto& names = kFieldNames<Everything>;
  CHECK(std::vector<std::string_view>(names.begin(), names.end()) ==
        std::vector<std::string_view>{"x", "probe_timeout_ms", "maybe", "list", "by_name", "colour",
                                      "inner", "value", "pointer"});
}

TEST_CASE("fields: names are known when compiling") {
  static_assert(kFieldNames<Inner>.size() == 1);
  static_assert(kFieldNames<Inner>[0] == "depth");
  static_assert(kEnumerators<Colour>[1] == "dark_green");
  CHECK(kFieldNames<Inner>[0] == "depth");
}

TEST_CASE("fields: an empty struct has none") {
  CHECK(kFieldNames<Empty>.size() == 0);
}

TEST_CASE("fields: a struct inside a function is named too") {
  struct Local {
    int first_one;
    int second_one;
  };
  CHECK(kFieldNames<Local>[0] == "first_one");
  CHECK(kFieldNames<Local>[1] == "second_one");
}

TEST_CASE("fields: enumerators are found by value") {
  CHECK(kEnumerators<Colour>[0] == "red");
  CHECK(kEnumerators<Colour>[2] == "blue");
  CHECK(kEnumerators<Colour>[3].empty());
}

TEST_CASE("fields: gaps between enumerators have no name") {
  const auto& names = kEnumerators<Sparse>;
  CHECK(names[0].empty());
  CHECK(names[1] == "first");
  CHECK(names[2].empty());
  CHECK(names[3] == "third");
  CHECK(names[15] == "last");
  CHECK(names.size() == 16);
}

TEST_CASE("fields: an enum is spelt with hyphens") {
  CHECK(enum_name(Colour::red) == "red");
  CHECK(enum_name(Colour::dark_green) == "dark-green");
  CHECK(enum_name(static_cast<Colour>(7)).empty());
  CHECK(enum_name(Sparse::beyond).empty());
}

TEST_CASE("fields: a key is spelt in camel case") {
  CHECK(json_key("x") == "x");
  CHECK(json_key("probe_timeout_ms") == "probeTimeoutMs");
  CHECK(json_key("alreadyCamel") == "alreadyCamel");
  CHECK(json_key("port_8080") == "port8080");
  CHECK(json_key("").empty());
}

}  // namespace
}  // namespace stockade::test
