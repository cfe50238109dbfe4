// SPDX-License-Identifier: MIT
// `stockade mcp`: a server on standard input and output, for the client that started it; or on a
// port of this machine.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iostream>

#include "framework/error.hpp"
#include "framework/fd.hpp"
#include "framework/random.hpp"
#include "host/commands.hpp"
#include "host/input.hpp"
#include "host/output.hpp"
#include "host/session.hpp"
#include "host/signals.hpp"
#include "plugins/mcp-http/mcp_http.hpp"
#include "plugins/mcp/mcp.hpp"

namespace stockade {

namespace {

class StandardStreams final : public McpChannel {
 public:
  StandardStreams(Loop& loop, AbortOnSignal& abort) : in_(loop, 0), out_(loop, 1) {
    stopping_ = abort.signal().on_abort([this] { out_.set_patience(kLastPatience); });
    out_.on_broken([this, &abort] {
      gone_ = true;
      abort.abort(SIGPIPE, "the client closed standard output");
    });
  }
  Task<std::string> read(AbortSignal abort) override { return in_.read(std::move(abort)); }
  void write(std::string_view bytes) override { out_.write(bytes); }
  bool saturated() const override { return out_.saturated(); }
  bool broken() const override { return out_.broken(); }
  Completion<> drained() const override { return out_.drained(); }
  bool gone() const { return gone_; }

 private:
  Input in_;
  Output out_;
  bool gone_ = false;
  AbortSubscription stopping_;
};

Task<bool> serve(std::shared_ptr<McpServer> server, StandardStreams& streams,
                 std::shared_ptr<SessionLog> session, AbortSignal abort) {
  auto serving = server->serve(streams, std::move(session), abort);
  co_await serving;
  Completion<> drained = streams.drained();
  co_await drained;
  co_return true;
}

std::string first_line(const std::string& path) {
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[4096];
  ssize_t n = file ? read(file.get(), text, sizeof text) : -1;
  if (n < 0)
    throw Error("TOKEN_UNUSABLE",
                "cannot read the token file " + path + ": " + describe_errno(errno), path);
  std::string line(text, static_cast<std::size_t>(n));
  return line.substr(0, line.find_first_of("\r\n"));
}

std::string bearer_token(const McpOptions& options, bool& made_up) {
  made_up = false;
  std::string token;
  if (options.token_file) {
    token = first_line(*options.token_file);
  } else if (const char* given = getenv("STOCKADE_MCP_TOKEN")) {
    token = given;
  } else {
    made_up = true;
    token = random_hex(24);
  }
  if (token.size() < 16)
    throw Error("TOKEN_UNUSABLE",
                "the bearer token has fewer than 16 characters; any process of this machine could "
                "guess it");
  return token;
}

Task<bool> done(Task<> task) {
  co_await task;
  co_return true;
}

int serve_http(const McpOptions& options) {
  bool made_up = false;
  std::string token = bearer_token(options, made_up);
  Host host(options.composition);
  auto server = host.service<McpHttpServer>();
  AbortOnSignal abort(host.loop());
  auto session = open_session(host, options.composition, {options.session, true, "mcp"});
  auto listening = [&](std::uint16_t port) {
    // In one write: whoever waits for the URL must not see half of it.
    std::string text = "stockade: serving http://127.0.0.1:" + std::to_string(port) + "/mcp\n";
    if (made_up) text += "stockade: bearer token " + token + "\n";
    std::cerr << text << std::flush;
  };
  host.run(done(
      server->serve(*options.http_port, token, std::move(session), listening, abort.signal())));
  return 128 + abort.caught();
}

}  // namespace

int serve_mcp(const McpOptions& options) {
  try {
    if (options.http_port) return serve_http(options);
    Host host(options.composition);
    auto server = host.service<McpServer>();
    AbortOnSignal abort(host.loop());
    StandardStreams streams(host.loop(), abort);
    auto session = open_session(host, options.composition, {options.session, true, "mcp"});
    host.run(serve(server, streams, std::move(session), abort.signal()));
    // A client that went away is how a server ends.
    return abort.caught() && !streams.gone() ? 128 + abort.caught() : 0;
  } catch (...) {
    return report_failure(std::current_exception());
  }
}

}  // namespace stockade
