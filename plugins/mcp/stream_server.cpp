// SPDX-License-Identifier: MIT
#include "plugins/mcp/stream_server.hpp"

#include "framework/json.hpp"
#include "plugins/mcp/framing.hpp"

namespace stockade {

namespace {

class ChannelOutlet final : public mcp::Outlet {
 public:
  explicit ChannelOutlet(McpChannel& channel) : channel_(channel) {}
  void send(const rpc::Json& message, const nlohmann::json&) override {
    channel_.write(json_text(message) + "\n");
  }
  bool saturated() const override { return channel_.saturated(); }

 private:
  McpChannel& channel_;
};

// Whichever comes first.
Task<> either(Completion<> one, Completion<> over) {
  co_await one;
  over.settle();
}

}  // namespace

Task<> McpStreamServer::serve(McpChannel& channel, std::shared_ptr<SessionLog> session,
                              AbortSignal abort) {
  ChannelOutlet outlet(channel);
  mcp::Connection connection(loop_, tools_, options_.connection, std::move(session), outlet, log_);
  LineFramer framer(
      options_.max_message, [&](std::string_view line) { connection.receive(line); },
      [&] { connection.receive_overlong(options_.max_message); });

  while (!abort.aborted() && !channel.broken()) {
    if (channel.saturated()) {
      // A client that does not read is not read from, either, so that answers cannot pile up.
      Completion<> over(loop_);
      AbortSubscription stop = abort.on_abort([over] { over.settle(); });
      TaskScope waiting(loop_, [](std::exception_ptr) {});
      waiting.start(either(channel.drained(), over));
      co_await over;
      continue;
    }
    auto reading = channel.read(abort);
    std::string bytes = co_await reading;
    if (bytes.empty()) break;
    framer.feed(bytes);
  }
  if (!abort.aborted() && !channel.broken()) {
    framer.finish();
    // The client has said all that it will, and may still wait for the answers.
    Completion<> over(loop_);
    AbortSubscription stop = abort.on_abort([over] { over.settle(); });
    Timer limit(loop_);
    limit.start(options_.linger, [over] { over.settle(); });
    TaskScope waiting(loop_, [](std::exception_ptr) {});
    waiting.start(either(connection.idle(), over));
    co_await over;
  }
  connection.close("the client is gone");
  Completion<> idle = connection.idle();
  co_await idle;
}

}  // namespace stockade
