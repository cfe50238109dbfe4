// SPDX-License-Identifier: MIT
// `stockade mcp`: a server on standard input and output, for the client that started it.
#include <signal.h>

#include "framework/error.hpp"
#include "host/commands.hpp"
#include "host/input.hpp"
#include "host/output.hpp"
#include "host/session.hpp"
#include "host/signals.hpp"
#include "plugins/mcp/mcp.hpp"

namespace stockade {

namespace {

class StandardStreams final : public McpChannel {
 public:
  StandardStreams(Loop& loop, AbortOnSignal& abort) : in_(loop, 0), out_(loop, 1) {
    // Told to stop, the host does not wait for a reader that has stalled.
    abandon_ = abort.signal().on_abort([this] { out_.abandon(); });
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
  AbortSubscription abandon_;
};

Task<bool> serve(std::shared_ptr<McpServer> server, StandardStreams& streams,
                 std::shared_ptr<SessionLog> session, AbortSignal abort) {
  auto serving = server->serve(streams, std::move(session), abort);
  co_await serving;
  Completion<> drained = streams.drained();
  co_await drained;
  co_return true;
}

}  // namespace

int serve_mcp(const McpOptions& options) {
  try {
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
