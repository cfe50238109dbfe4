// SPDX-License-Identifier: MIT
// The MCP endpoint over HTTP: who may speak to it, and which answer belongs to which request.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "framework/log.hpp"
#include "plugins/mcp-http/http_server.hpp"
#include "plugins/mcp/connection.hpp"

namespace stockade::mcp {

struct EndpointOptions {
  ConnectionOptions connection;
  std::string token;
  std::size_t max_sessions = 32;  // of clients up to 2025-11-25; the one idle longest makes room
  std::chrono::milliseconds quiet{10000};  // then an answer becomes a stream that is kept alive
};

// `Origin` and `Host` as a browser or a client on this machine sends them; a page from elsewhere
// that resolves its own name to 127.0.0.1 is neither.
bool is_local_origin(const std::string& origin);
bool is_local_host(const std::string& host);
// Takes the same time wherever the two differ.
bool same_secret(const std::string& given, const std::string& wanted);
// The value of a header that may be `=?base64?…?=`; absent for what is malformed.
std::optional<std::string> decode_header(const std::string& value);

class HttpEndpoint {
 public:
  HttpEndpoint(Loop& loop, ToolBox tools, EndpointOptions options,
               std::shared_ptr<SessionLog> session, Log log);
  ~HttpEndpoint();
  void on_request(std::shared_ptr<http::Exchange> exchange);
  void close(const std::string& reason);  // ends every call
  std::size_t calls() const;              // that have not ended

 private:
  class Client;
  using Clients = std::list<std::shared_ptr<Client>>;

  bool admitted(http::Exchange& exchange) const;
  void on_message(const std::shared_ptr<http::Exchange>& exchange);
  void on_modern(const std::shared_ptr<http::Exchange>& exchange, const rpc::Request& request);
  void on_legacy(const std::shared_ptr<http::Exchange>& exchange, const rpc::Message& message);
  std::shared_ptr<Client> make_client(bool modern);
  void forget_idle();

  Loop& loop_;
  ToolBox tools_;
  EndpointOptions options_;
  std::shared_ptr<SessionLog> session_;
  Log log_;
  Clients modern_;                                         // one for each call that is not over
  std::map<std::string, std::shared_ptr<Client>> legacy_;  // by Mcp-Session-Id
  std::uint64_t clock_ = 0;
};

}  // namespace stockade::mcp
