// SPDX-License-Identifier: MIT
// The little of HTTP/1.1 that a server of a few local clients needs: requests with a body, answers
// whole or as a stream of events. Parsing is Boost.Beast's; this file owns sockets and limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "framework/loop.hpp"

namespace stockade::http {

struct Request {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  std::string header(const std::string& name) const {
    auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
};

using Headers = std::map<std::string, std::string>;

// One request and its answer. Of respond() and begin_stream() exactly one is called, once.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;
  virtual void respond(int status, const Headers& headers, std::string_view body) = 0;
  virtual void begin_stream(const Headers& headers) = 0;  // of text/event-stream
  virtual void stream(std::string_view bytes) = 0;
  virtual void end_stream() = 0;
  virtual bool answered() const = 0;   // wholly
  virtual bool streaming() const = 0;  // begun
  virtual bool saturated() const = 0;
  // Called once when the client goes before it has the whole answer; what is sent after is dropped.
  virtual void on_gone(std::function<void()> callback) = 0;
};

struct Limits {
  std::size_t header_bytes = 16384;
  std::size_t body_bytes = 4U << 20;
  std::size_t connections = 64;           // one more is told to come back
  std::chrono::milliseconds idle{60000};  // for a whole request to come
};

class Server {
 public:
  // Listens on 127.0.0.1; `port` 0 is any free one. Throws Error `PORT_UNUSABLE`.
  Server(Loop& loop, std::uint16_t port, Limits limits,
         std::function<void(std::shared_ptr<Exchange>)> on_request);
  ~Server();  // closes every connection
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const noexcept { return port_; }

 private:
  struct Listener;
  class Connection;
  void accept();

  Loop& loop_;
  Limits limits_;
  std::function<void(std::shared_ptr<Exchange>)> on_request_;
  Listener* listener_;  // lives until libuv's close callback
  std::uint16_t port_ = 0;
  std::list<std::shared_ptr<Connection>> connections_;
};

}  // namespace stockade::http
