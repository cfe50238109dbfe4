// SPDX-License-Identifier: MIT
// JSON-RPC 2.0 as MCP uses it: one message a line, ids are strings or whole numbers, no batches.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>

namespace stockade::rpc {

inline constexpr int kParseError = -32700;
inline constexpr int kInvalidRequest = -32600;
inline constexpr int kMethodNotFound = -32601;
inline constexpr int kInvalidParams = -32602;
inline constexpr int kInternalError = -32603;

using Json = nlohmann::ordered_json;

// `params` is an object, empty where there was none.
struct Request {
  nlohmann::json id;
  std::string method;
  nlohmann::json params;
};
struct Notification {
  std::string method;
  nlohmann::json params;
};
struct Response {
  nlohmann::json id;
  bool failed = false;
  nlohmann::json value;  // of `result` or `error`
};
// What is no message. `id` is the one to answer with, null where none can be read; `answer` is
// false for what looks like a notification or a response, which are never answered.
struct Invalid {
  nlohmann::json id;
  int code = kInvalidRequest;
  std::string message;
  bool answer = true;
};

using Message = std::variant<Request, Notification, Response, Invalid>;

// Never throws. Nesting beyond 64 levels and duplicate keys are parse errors.
Message read_message(std::string_view line);

bool is_id(const nlohmann::json& value);

Json result(const nlohmann::json& id, Json value);
Json error(const nlohmann::json& id, int code, const std::string& message, Json data = nullptr);
Json request(const std::string& id, const std::string& method, Json params);
Json notification(const std::string& method, Json params);

}  // namespace stockade::rpc
