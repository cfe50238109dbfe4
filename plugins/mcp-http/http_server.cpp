// SPDX-License-Identifier: MIT
#include "plugins/mcp-http/http_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <uv.h>

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cctype>
#include <optional>

#include "framework/error.hpp"

namespace stockade::http {

namespace {

namespace beast = boost::beast::http;
using Parser = beast::request_parser<beast::string_body>;

constexpr std::size_t kMaxQueued = 1U << 20;

const char* reason(int status) {
  auto text = beast::obsolete_reason(static_cast<beast::status>(status));
  return text.data();  // of a literal
}

std::string head(int status, const Headers& headers, std::optional<std::size_t> length) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " " + reason(status) + "\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  if (length)
    text += "Content-Length: " + std::to_string(*length) + "\r\n";
  else
    text += "Transfer-Encoding: chunked\r\n";
  return text + "\r\n";
}

}  // namespace

struct Server::Listener {
  uv_tcp_t handle{};
  Server* server = nullptr;
};

// A client's socket. Requests on it are answered one after the other.
class Server::Connection : public std::enable_shared_from_this<Server::Connection> {
 public:
  explicit Connection(Server& server) : server_(&server), idle_(server.loop_) {}

  bool open(uv_stream_t* listener) {
    socket_ = new Socket;
    uv_tcp_init(server_->loop_.uv(), &socket_->handle);
    socket_->handle.data = socket_;
    socket_->connection = shared_from_this();
    if (uv_accept(listener, stream()) != 0) {
      close();
      return false;
    }
    uv_tcp_nodelay(&socket_->handle, 1);
    next_request();
    uv_read_start(
        stream(),
        [](uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
          auto& read = static_cast<Socket*>(handle->data)->buffer;
          *buffer = uv_buf_init(read, sizeof read);
        },
        [](uv_stream_t* handle, ssize_t n, const uv_buf_t* buffer) {
          auto connection = static_cast<Socket*>(handle->data)->connection;
          if (!connection) return;
          if (n < 0)
            connection->gone();
          else
            connection->received({buffer->base, static_cast<std::size_t>(n)});
        });
    return true;
  }

  void refuse(int status) {
    if (socket_) uv_read_stop(stream());  // what else it sends is not looked at
    write(head(status, {{"Connection", "close"}}, 0), true);
  }

  void write(std::string bytes, bool last = false) {
    if (!socket_) return;
    if (last) limit_time();
    struct Write {
      uv_write_t request{};
      std::string bytes;
      std::shared_ptr<Connection> connection;
      bool last = false;
    };
    auto* writing = new Write;
    writing->bytes = std::move(bytes);
    writing->connection = shared_from_this();
    writing->last = last;
    writing->request.data = writing;
    uv_buf_t buffer =
        uv_buf_init(writing->bytes.data(), static_cast<unsigned>(writing->bytes.size()));
    int error =
        uv_write(&writing->request, stream(), &buffer, 1, [](uv_write_t* request, int status) {
          std::unique_ptr<Write> done(static_cast<Write*>(request->data));
          if (status < 0)
            done->connection->gone();
          else if (done->last)
            done->connection->close();
          else
            done->connection->proceed();
        });
    if (error != 0) {
      delete writing;
      gone();
    }
  }

  bool saturated() const {
    return socket_ && uv_stream_get_write_queue_size(
                          reinterpret_cast<const uv_stream_t*>(&socket_->handle)) > kMaxQueued;
  }

  void close() {
    if (!socket_) return;
    auto keep = shared_from_this();
    idle_.stop();
    Socket* socket = std::exchange(socket_, nullptr);
    socket->connection.reset();
    uv_close(reinterpret_cast<uv_handle_t*>(&socket->handle),
             [](uv_handle_t* handle) { delete static_cast<Socket*>(handle->data); });
    if (server_) {
      auto& all = server_->connections_;
      all.erase(std::remove(all.begin(), all.end(), keep), all.end());
    }
  }

  void gone();
  void answered();
  void detach() { server_ = nullptr; }

 private:
  class OneExchange;
  struct Socket {
    uv_tcp_t handle{};
    char buffer[65536];
    std::shared_ptr<Connection> connection;
  };
  uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&socket_->handle); }

  // Who sends nothing, or a byte now and then, or does not read, takes no place for good.
  void limit_time() {
    if (server_) idle_.start(server_->limits_.idle, [this] { gone(); });
  }
  void next_request() {
    limit_time();
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(server_->limits_.header_bytes));
    parser_->body_limit(server_->limits_.body_bytes);
    parser_->eager(true);
  }

  void received(std::string_view bytes);
  void proceed();
  void parse();

  Server* server_;
  Socket* socket_ = nullptr;  // lives until libuv's close callback
  Timer idle_;
  std::optional<Parser> parser_;
  std::string pending_;  // of the next request
  std::shared_ptr<OneExchange> exchange_;
};

class Server::Connection::OneExchange final : public Exchange {
 public:
  OneExchange(std::shared_ptr<Connection> connection, Request request, bool keep_alive)
      : connection_(std::move(connection)), request_(std::move(request)), keep_alive_(keep_alive) {}

  const Request& request() const override { return request_; }
  void respond(int status, const Headers& headers, std::string_view body) override {
    if (!connection_ || answered_) return;
    answered_ = true;
    connection_->write(head(status, with_connection(headers), body.size()) + std::string(body),
                       !keep_alive_);
    finish();
  }
  void begin_stream(const Headers& headers) override {
    if (!connection_ || streaming_) return;
    streaming_ = true;
    connection_->write(head(200, with_connection(headers), std::nullopt));
  }
  void stream(std::string_view bytes) override {
    if (!connection_ || bytes.empty()) return;
    char size[20];
    snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    connection_->write(size + std::string(bytes) + "\r\n");
  }
  void end_stream() override {
    if (!connection_ || answered_) return;
    answered_ = true;
    connection_->write("0\r\n\r\n", !keep_alive_);
    finish();
  }
  bool answered() const override { return answered_; }
  bool streaming() const override { return streaming_; }
  bool saturated() const override { return connection_ && connection_->saturated(); }
  void on_gone(std::function<void()> callback) override { on_gone_ = std::move(callback); }

  void gone() {
    connection_.reset();
    if (!answered_ && on_gone_) std::exchange(on_gone_, nullptr)();
  }

 private:
  Headers with_connection(Headers headers) const {
    if (!keep_alive_) headers["Connection"] = "close";
    return headers;
  }
  void finish() {
    on_gone_ = nullptr;
    auto connection = std::exchange(connection_, nullptr);
    if (keep_alive_) connection->answered();
  }

  std::shared_ptr<Connection> connection_;
  Request request_;
  bool keep_alive_;
  bool answered_ = false;
  bool streaming_ = false;
  std::function<void()> on_gone_;
};

void Server::Connection::gone() {
  auto keep = shared_from_this();
  close();
  if (auto exchange = std::exchange(exchange_, nullptr)) exchange->gone();
}

void Server::Connection::answered() {
  exchange_.reset();
  if (!server_ || !socket_) return;
  // On a later turn: the answer may have been given from within parse().
  limit_time();
  server_->loop_.post([weak = weak_from_this()] {
    if (auto connection = weak.lock()) connection->proceed();
  });
}

// To the next request, once the last is answered and most of the answer is taken: a client that
// sends requests and does not read must not fill memory with answers.
void Server::Connection::proceed() {
  if (!server_ || !socket_ || exchange_ || !parser_->is_done() || saturated()) return;
  next_request();
  if (!pending_.empty()) parse();
}

void Server::Connection::received(std::string_view bytes) {
  pending_ += bytes;
  // What comes during an answer waits for it; one who sends ahead without end is cut off.
  if (exchange_ || (parser_ && parser_->is_done())) {
    if (pending_.size() > kMaxQueued) gone();
    return;
  }
  parse();
}

void Server::Connection::parse() {
  while (!pending_.empty() && !parser_->is_done()) {
    boost::system::error_code error;
    std::size_t used = parser_->put(boost::asio::buffer(pending_), error);
    pending_.erase(0, used);
    if (error == beast::error::need_more) return;
    if (error) {
      int status = error == beast::error::body_limit     ? 413
                   : error == beast::error::header_limit ? 431
                                                         : 400;
      return refuse(status);
    }
  }
  if (!parser_->is_done()) return;

  idle_.stop();
  auto message = parser_->release();
  Request request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    // Twice the same is two answers to one question; of these headers none may be a list.
    auto [found, first] = request.headers.emplace(name, std::string(field.value()));
    if (!first) found->second += ", " + std::string(field.value());
  }
  request.body = std::move(message.body());
  exchange_ =
      std::make_shared<OneExchange>(shared_from_this(), std::move(request), message.keep_alive());
  server_->on_request_(exchange_);
}

Server::Server(Loop& loop, std::uint16_t port, Limits limits,
               std::function<void(std::shared_ptr<Exchange>)> on_request)
    : loop_(loop), limits_(limits), on_request_(std::move(on_request)), listener_(new Listener) {
  listener_->server = this;
  uv_tcp_init(loop.uv(), &listener_->handle);
  listener_->handle.data = listener_;
  sockaddr_in address{};
  uv_ip4_addr("127.0.0.1", port, &address);
  int error = uv_tcp_bind(&listener_->handle, reinterpret_cast<const sockaddr*>(&address), 0);
  if (error == 0)
    error = uv_listen(reinterpret_cast<uv_stream_t*>(&listener_->handle), 16,
                      [](uv_stream_t* handle, int status) {
                        auto* server = static_cast<Listener*>(handle->data)->server;
                        if (server && status == 0) server->accept();
                      });
  if (error != 0) {
    uv_close(reinterpret_cast<uv_handle_t*>(&listener_->handle),
             [](uv_handle_t* handle) { delete static_cast<Listener*>(handle->data); });
    throw Error("PORT_UNUSABLE",
                "cannot listen on 127.0.0.1:" + std::to_string(port) + ": " + uv_strerror(error) +
                    "; choose another port, or 0 for any",
                std::to_string(port));
  }
  sockaddr_in bound{};
  int length = sizeof bound;
  uv_tcp_getsockname(&listener_->handle, reinterpret_cast<sockaddr*>(&bound), &length);
  port_ = ntohs(bound.sin_port);
}

Server::~Server() {
  listener_->server = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&listener_->handle),
           [](uv_handle_t* handle) { delete static_cast<Listener*>(handle->data); });
  for (auto& connection : std::exchange(connections_, {})) {
    connection->detach();
    connection->gone();
  }
}

void Server::accept() {
  auto connection = std::make_shared<Connection>(*this);
  connections_.push_back(connection);
  if (!connection->open(reinterpret_cast<uv_stream_t*>(&listener_->handle))) return;
  if (connections_.size() > limits_.connections) connection->refuse(503);
}

}  // namespace stockade::http
