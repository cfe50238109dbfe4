// SPDX-License-Identifier: MIT
#include "plugins/mcp/jsonrpc.hpp"

#include "framework/config.hpp"
#include "framework/error.hpp"

namespace stockade::rpc {

bool is_id(const nlohmann::json& value) {
  return value.is_string() || value.is_number_integer();
}

Message read_message(std::string_view line) {
  nlohmann::json json;
  try {
    json = parse_config(line, "the message");
  } catch (const Error& error) {
    return Invalid{nullptr, kParseError, error.what(), true};
  }
  auto invalid = [&](const std::string& what, bool answer = true) {
    nlohmann::json id;
    if (json.is_object() && json.contains("id") && is_id(json["id"])) id = json["id"];
    return Invalid{std::move(id), kInvalidRequest, what, answer};
  };
  if (json.is_array()) return invalid("batches are not supported: send one message a line");
  if (!json.is_object()) return invalid("a message is a JSON object");
  if (json.value("jsonrpc", nlohmann::json()) != "2.0")
    return invalid("\"jsonrpc\" must be \"2.0\"", json.contains("id") || !json.contains("method"));

  if (!json.contains("method")) {
    if (!json.contains("result") && !json.contains("error"))
      return invalid("a message has a \"method\", a \"result\" or an \"error\"");
    bool failed = json.contains("error");
    auto id = json.contains("id") && is_id(json["id"]) ? json["id"] : nlohmann::json();
    return Response{std::move(id), failed, json[failed ? "error" : "result"]};
  }
  bool has_id = json.contains("id");
  if (has_id && !is_id(json["id"])) return invalid("\"id\" must be a string or a whole number");
  if (!json["method"].is_string()) return invalid("\"method\" must be a string", has_id);
  nlohmann::json params = nlohmann::json::object();
  if (json.contains("params")) {
    if (!json["params"].is_object()) return invalid("\"params\" must be an object", has_id);
    params = std::move(json["params"]);
  }
  auto method = json["method"].get<std::string>();
  if (!has_id) return Notification{std::move(method), std::move(params)};
  return Request{json["id"], std::move(method), std::move(params)};
}

Json result(const nlohmann::json& id, Json value) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(value)}};
}

Json error(const nlohmann::json& id, int code, const std::string& message, Json data) {
  Json what{{"code", code}, {"message", message}};
  if (!data.is_null()) what["data"] = std::move(data);
  return {{"jsonrpc", "2.0"}, {"id", id}, {"error", std::move(what)}};
}

Json request(const std::string& id, const std::string& method, Json params) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
}

Json notification(const std::string& method, Json params) {
  return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}

}  // namespace stockade::rpc
