// SPDX-License-Identifier: MIT
// One client of the MCP server: what it says becomes answers and tool calls. Knows neither pipes
// nor sockets, and no tool by name.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/abort.hpp"
#include "framework/completion.hpp"
#include "framework/log.hpp"
#include "framework/loop.hpp"
#include "plugins/approval/approval.hpp"
#include "plugins/mcp/protocol.hpp"
#include "plugins/tool.hpp"

namespace stockade::mcp {

// Where messages to the client go. Must not call back into the connection.
class Outlet {
 public:
  virtual ~Outlet() = default;
  // `about` is the id of the client's request that the message belongs to, null for none.
  virtual void send(const rpc::Json& message, const nlohmann::json& about) = 0;
  virtual bool saturated() const = 0;  // the client does not read; what can be left out is
};

// The tools of the moment.
struct ToolBox {
  std::function<std::vector<std::shared_ptr<Tool>>()> all;
  std::function<std::shared_ptr<Tool>(std::string_view name)> find;  // null: there is none
};

struct ConnectionOptions {
  std::string version = "0";   // of stockade
  std::size_t max_calls = 32;  // at once; one more is an error result that says so
  std::chrono::milliseconds progress_interval{250};
  std::chrono::milliseconds approval_timeout{600000};  // for a question that nobody answers
};

class Connection {
 public:
  // `outlet` outlives the connection.
  Connection(Loop& loop, ToolBox tools, ConnectionOptions options,
             std::shared_ptr<SessionLog> session, Outlet& outlet, Log log);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void receive(std::string_view line);  // one message
  void receive_overlong(std::size_t limit);
  // The client is gone: every call is aborted and nothing is answered any more.
  void close(const std::string& reason);
  std::size_t calls() const noexcept { return calls_; }  // that have not ended
  Completion<> idle();                                   // settles when there is none
  // A call that waits for the answer to a question, which comes with this state.
  bool waits_for(const std::string& request_state) const;
  void cancel(const nlohmann::json& id);  // as the client's own notification does

 private:
  struct Call;
  class ClientAnswerer;

  void on_request(rpc::Request request);
  void on_legacy(const rpc::Request& request);
  void on_modern(const rpc::Request& request, const ClientFacts& client);
  void on_notification(const rpc::Notification& notification);
  void on_response(const rpc::Response& response);
  void initialize(const rpc::Request& request);

  void list_tools(const rpc::Request& request, bool modern);
  void call_tool(const rpc::Request& request, const ClientFacts& client);
  bool resume_call(const rpc::Request& request, const ClientFacts& client);
  Task<> run(std::shared_ptr<Call> call, std::shared_ptr<Tool> tool, nlohmann::json arguments);
  void finish(const std::shared_ptr<Call>& call, const ToolResult& result);
  void report_progress(const std::shared_ptr<Call>& call);
  void log_outcome(const Call& call, const ToolResult& result);

  Task<std::optional<EscalationOutcome>> ask(std::shared_ptr<Call> call, Escalation escalation);
  void ask_again_later(const std::shared_ptr<Call>& call, const nlohmann::json& id);

  void reply(const nlohmann::json& id, bool modern, rpc::Json result);
  void reply_error(const nlohmann::json& id, int code, const std::string& message,
                   rpc::Json data = nullptr);

  Loop& loop_;
  ToolBox tools_;
  ConnectionOptions options_;
  std::shared_ptr<SessionLog> session_;
  Outlet& outlet_;
  Log log_;

  std::optional<ClientFacts> legacy_;                               // once initialized
  std::map<nlohmann::json, std::shared_ptr<Call>> in_flight_;       // by the id of the request
  std::map<std::string, std::shared_ptr<Call>> suspended_;          // by requestState
  std::map<std::string, Completion<EscalationOutcome>> questions_;  // to a legacy client, by id
  std::uint64_t last_question_ = 0;
  std::uint64_t last_call_ = 0;
  std::size_t calls_ = 0;
  bool closed_ = false;
  std::optional<Completion<>> idle_;
  TaskScope running_;  // last: what runs in it uses all the rest
};

}  // namespace stockade::mcp
