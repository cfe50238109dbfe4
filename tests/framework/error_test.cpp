// SPDX-License-Identifier: MIT
#include "framework/error.hpp"

#include <cerrno>

#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

TEST_CASE("error: carries code and text and operand") {
  Error error("SOME_CODE", "a text", "/a/path");
  CHECK(error.code() == "SOME_CODE");
  CHECK(std::string(error.what()) == "a text");
  CHECK(error.operand() == "/a/path");
  CHECK(Error("C", "t").operand().empty());
}

TEST_CASE("error: any exception can be described") {
  CHECK(describe(std::make_exception_ptr(Error("C", "text"))) == "text");
  CHECK(describe(std::make_exception_ptr(std::runtime_error("other"))) == "other");
  CHECK(describe(std::make_exception_ptr(5)) == "an exception that is no std::exception");
  CHECK(describe(nullptr) == "no error");
}

TEST_CASE("error: a foreign exception has the fallback as its code") {
  CHECK(code_of(std::make_exception_ptr(Error("C", "text")), "X") == "C");
  CHECK(code_of(std::make_exception_ptr(std::runtime_error("other")), "X") == "X");
  CHECK(code_of(std::make_exception_ptr(5), "X") == "X");
  CHECK(code_of(nullptr, "X") == "X");
}

TEST_CASE("error: an errno is described by name and text") {
  CHECK(describe_errno(EACCES) == "EACCES (Permission denied)");
  CHECK(describe_errno(ENOENT) == "ENOENT (No such file or directory)");
  CHECK(describe_errno(99999) == "errno 99999 (unknown error)");
}

TEST_CASE("error: the nearest candidate is the one with the fewest edits") {
  const std::vector<std::string> known{"sandbox", "sandbox-local", "tool-bash", "script"};
  CHECK(nearest("sandbx", known) == "sandbox");
  CHECK(nearest("sandbox-loacl", known) == "sandbox-local");
  CHECK(nearest("Script", known) == "script");
  CHECK(nearest("toolbash", known) == "tool-bash");
  CHECK(nearest("script", known) == "script");
}

TEST_CASE("error: another word is no typo") {
  const std::vector<std::string> known{"sandbox", "script"};
  CHECK(nearest("zzzzzz", known).empty());
  CHECK(nearest("x", known).empty());
  CHECK(nearest("", known).empty());
  CHECK(nearest("script", {}).empty());
}

TEST_CASE("error: a suggestion names the nearest or lists all") {
  const std::vector<std::string> known{"alpha", "beta"};
  CHECK(suggestion("alpa", known) == " (did you mean \"alpha\"?)");
  CHECK(suggestion("zzzzzz", known) == " (known: alpha, beta)");
  CHECK(suggestion("alpa", {}).empty());
}

}  // namespace
}  // namespace stockade::test
