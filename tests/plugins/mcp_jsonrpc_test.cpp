// SPDX-License-Identifier: MIT
#include "plugins/mcp/jsonrpc.hpp"

#include "tests/support/catch.hpp"

using namespace stockade::rpc;
using nlohmann::json;

TEST_CASE("mcp jsonrpc: requests notifications and responses are told apart") {
  auto request = std::get<Request>(
      read_message(R"({"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}})"));
  CHECK(request.id == "a");
  CHECK(request.method == "m");
  CHECK(request.params == json{{"x", 1}});
  auto notification = std::get<Notification>(read_message(R"({"jsonrpc":"2.0","method":"m"})"));
  CHECK(notification.params == json::object());
  auto response = std::get<Response>(read_message(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  CHECK(response.id == 1);
  CHECK_FALSE(response.failed);
  CHECK(std::get<Response>(read_message(R"({"jsonrpc":"2.0","id":1,"error":{"code":1}})")).failed);
}

TEST_CASE("mcp jsonrpc: an id is text or a whole number") {
  for (const char* id : {"\"a\"", "\"\"", "0", "-7", "18446744073709551615"}) {
    auto message =
        read_message(std::string(R"({"jsonrpc":"2.0","id":)") + id + R"(,"method":"m"})");
    REQUIRE(std::holds_alternative<Request>(message));
    CHECK(std::get<Request>(message).id.dump() == id);
  }
  for (const char* id : {"1.5", "null", "true", "[1]", "{}"}) {
    auto message =
        read_message(std::string(R"({"jsonrpc":"2.0","id":)") + id + R"(,"method":"m"})");
    REQUIRE(std::holds_alternative<Invalid>(message));
    CHECK(std::get<Invalid>(message).code == kInvalidRequest);
    CHECK(std::get<Invalid>(message).id.is_null());
    CHECK(std::get<Invalid>(message).answer);
  }
}

TEST_CASE("mcp jsonrpc: what is no message has the error that the protocol names") {
  struct Row {
    std::string line;
    int code;
    json id;
    bool answer;
  };
  for (const auto& row : {
           Row{"{", kParseError, nullptr, true},
           Row{"nonsense", kParseError, nullptr, true},
           Row{"{\"a\":\"\\ud800\"}", kParseError, nullptr, true},
           Row{"{\"a\":\"\xff\"}", kParseError, nullptr, true},
           Row{R"({"jsonrpc":"2.0","id":1,"id":2,"method":"m"})", kParseError, nullptr, true},
           Row{std::string(100000, '['), kParseError, nullptr, true},
           Row{"[]", kInvalidRequest, nullptr, true},
           Row{R"([{"jsonrpc":"2.0","id":1,"method":"m"}])", kInvalidRequest, nullptr, true},
           Row{"null", kInvalidRequest, nullptr, true},
           Row{"5", kInvalidRequest, nullptr, true},
           Row{"{}", kInvalidRequest, nullptr, true},
           Row{R"({"id":3,"method":"m"})", kInvalidRequest, 3, true},
           Row{R"({"jsonrpc":"1.0","id":3,"method":"m"})", kInvalidRequest, 3, true},
           Row{R"({"jsonrpc":"2.0","id":3})", kInvalidRequest, 3, true},
           Row{R"({"jsonrpc":"2.0","id":3,"method":4})", kInvalidRequest, 3, true},
           Row{R"({"jsonrpc":"2.0","id":3,"method":"m","params":[1]})", kInvalidRequest, 3, true},
           Row{R"({"jsonrpc":"2.0","method":"m","params":[1]})", kInvalidRequest, nullptr, false},
           Row{R"({"jsonrpc":"2.0","method":4})", kInvalidRequest, nullptr, false},
           Row{R"({"method":"x"})", kInvalidRequest, nullptr, false},
       }) {
    CAPTURE(row.line.substr(0, 80));
    auto message = read_message(row.line);
    REQUIRE(std::holds_alternative<Invalid>(message));
    const auto& invalid = std::get<Invalid>(message);
    CHECK(invalid.code == row.code);
    CHECK(invalid.id == row.id);
    CHECK(invalid.answer == row.answer);
    CHECK_FALSE(invalid.message.empty());
  }
}
