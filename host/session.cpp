// SPDX-License-Identifier: MIT
#include "host/session.hpp"

#include <time.h>
#include <unistd.h>

#include <vector>

#include "framework/error.hpp"
#include "plugins/sessions/sessions.hpp"
#include "sandbox/policy.hpp"

namespace stockade {

namespace {

std::string new_id(const std::string& prefix) {
  time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return prefix + "-" + text + "-" + std::to_string(getpid());
}

}  // namespace

std::shared_ptr<SessionLog> open_session(Host& host, const CompositionOptions& composition,
                                         const SessionOptions& options) {
  auto policies = host.context().find<SandboxPolicyResolver>();
  SandboxExecutionPolicy policy;
  if (policies) policy = policies->resolve({});
  const std::string root = policy.workspace_root;
  std::vector<std::string> writable{root};
  if (policy.extras)
    writable.insert(writable.end(), policy.extras->writable_roots.begin(),
                    policy.extras->writable_roots.end());
  if (options.id) {
    auto sessions = host.service<Sessions>();
    auto session = sessions->open(
        *options.id, composition.workspace ? std::optional(root) : std::nullopt, writable);
    if (composition.mode) {
      auto current = session_mode(session->session());
      if (!current || to_string(*current) != *composition.mode)
        session->append(std::string(kSandboxModeEvent), {{"mode", *composition.mode}});
    }
    return session;
  }
  std::string id = new_id(options.prefix);
  // Under --cwd the directory of commands is not the workspace, which a session's is.
  if (auto sessions = host.context().find<Sessions>();
      options.record && sessions && !composition.cwd) {
    try {
      return sessions->open(id, root, writable);
    } catch (const Error& error) {
      host.context().log().warn(std::string("this session is not recorded: ") + error.what());
    }
  }
  return std::make_shared<MemorySession>(Session{id, std::nullopt, {}});
}

}  // namespace stockade
