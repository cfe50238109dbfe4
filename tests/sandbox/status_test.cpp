// SPDX-License-Identifier: MIT
#include "sandbox/status.hpp"

#include "tests/support/catch.hpp"

using namespace stockade;

TEST_CASE("status: ready alone proves that the command ran") {
  auto status = read_status("{\"status\":\"ready\",\"landlockAbi\":7}\n");
  CHECK(status.ready);
  CHECK(status.failure.empty());
  CHECK(status.command_ran());
  CHECK(read_status("{\"status\":\"ready\"}").command_ran());
}

TEST_CASE("status: an empty report proves nothing") {
  auto status = read_status("");
  CHECK_FALSE(status.ready);
  CHECK(status.failure.empty());
  CHECK_FALSE(status.command_ran());
}

TEST_CASE("status: a refusal carries its message") {
  auto status = read_status("{\"status\":\"refused\",\"message\":\"no \\\"rule\\\"\"}\n");
  CHECK_FALSE(status.command_ran());
  CHECK(status.failure == "no \"rule\"");
}

TEST_CASE("status: a failed exec after ready is no run") {
  auto status = read_status(
      "{\"status\":\"ready\"}\n{\"status\":\"exec-failed\",\"message\":\"cannot execute x\"}\n");
  CHECK(status.ready);
  CHECK(status.failure == "cannot execute x");
  CHECK_FALSE(status.command_ran());
}

TEST_CASE("status: the first failure stands") {
  auto status = read_status(
      "{\"status\":\"refused\",\"message\":\"first\"}\n{\"status\":\"refused\",\"message\":\"b\"}"
      "\n");
  CHECK(status.failure == "first");
}

TEST_CASE("status: a failure without a message is named by its kind") {
  CHECK(read_status("{\"status\":\"refused\"}\n").failure == "refused");
  CHECK(read_status("{\"status\":\"exec-failed\"}\n").failure == "exec-failed");
}

TEST_CASE("status: a report that is not understood is a failure") {
  for (const char* text :
       {"garbage\n", "\n", "[]\n", "5\n", "null\n", "{}\n", "{\"status\":\"done\"}\n",
        "{\"status\":5}\n", "{\"status\":null}\n", "{\"status\":[\"ready\"]}\n",
        "{\"status\":\"READY\"}\n", "{\"status\":\"ready\"", "\xff\xfe\n"}) {
    CAPTURE(text);
    CHECK_FALSE(read_status(text).command_ran());
    CHECK_FALSE(read_status(text).failure.empty());
    // Nor does it become proof by standing beside one.
    CHECK_FALSE(read_status(std::string("{\"status\":\"ready\"}\n") + text).command_ran());
  }
}

TEST_CASE("status: a message that is no text is still a failure") {
  CHECK_FALSE(read_status("{\"status\":\"refused\",\"message\":7}\n").failure.empty());
  CHECK_FALSE(read_status("{\"status\":\"exec-failed\",\"message\":null}\n").failure.empty());
}

TEST_CASE("status: two ready reports are no proof") {
  CHECK_FALSE(read_status("{\"status\":\"ready\"}\n{\"status\":\"ready\"}\n").command_ran());
}

TEST_CASE("status: what is quoted of a report is bounded") {
  CHECK(read_status(std::string(kMaxStatusBytes, 'x')).failure.size() < 400);
}

TEST_CASE("status: how the command ended comes from its parent") {
  auto exited = read_status("{\"status\":\"ready\"}\n{\"status\":\"exited\",\"exitCode\":137}\n");
  CHECK(exited.command_ran());
  CHECK(exited.exit_code == 137);
  CHECK_FALSE(exited.signal);
  auto signaled = read_status("{\"status\":\"ready\"}\n{\"status\":\"signaled\",\"signal\":9}\n");
  CHECK(signaled.command_ran());
  CHECK(signaled.signal == 9);
  CHECK_FALSE(signaled.exit_code);
  for (const char* line :
       {"{\"status\":\"exited\"}\n", "{\"status\":\"exited\",\"exitCode\":\"1\"}\n",
        "{\"status\":\"signaled\",\"signal\":null}\n"})
    CHECK_FALSE(read_status(std::string("{\"status\":\"ready\"}\n") + line).command_ran());
}

TEST_CASE("status: a report in pieces is the report, each line when it is whole") {
  const std::string report =
      "{\"status\":\"ready\"}\n{\"status\":\"exec-failed\",\"message\":\"no\",\"errno\":2}\n";
  for (std::size_t step = 1; step <= report.size(); ++step) {
    StatusReader reader;
    for (std::size_t at = 0; at < report.size(); at += step) {
      reader.feed(std::string_view(report).substr(at, step));
      const std::size_t read = std::min(at + step, report.size());
      REQUIRE((reader.so_far() != nullptr) == (report[read - 1] == '\n'));
    }
    CHECK(reader.finish().ready);
    CHECK(reader.finish().failure == "no");
    CHECK(reader.finish().error == 2);
  }
}

TEST_CASE("status: a report that was cut off in a line is a failure at its end") {
  StatusReader reader;
  reader.feed("{\"status\":\"ready\"}\n{\"status\":\"exi");
  CHECK(reader.so_far() == nullptr);
  CHECK_FALSE(reader.finish().command_ran());
}

TEST_CASE("status: what is above the limit is dropped") {
  StatusReader reader;
  reader.feed(std::string(kMaxStatusBytes - 1, '\n'));
  reader.feed(std::string(kMaxStatusBytes, '\n'));
  reader.feed("x");
  CHECK(reader.so_far() != nullptr);
}
