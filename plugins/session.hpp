// SPDX-License-Identifier: MIT
// A session as a tool call sees it: what the policy asks of it, and the log that the call writes
// to.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sandbox/session.hpp"

namespace stockade {

class SessionLog {
 public:
  virtual ~SessionLog() = default;
  virtual const Session& session() const = 0;
  // Appends one event. Throws Error `SESSION_UNWRITABLE`; then what it would have recorded must not
  // happen.
  virtual void append(std::string type, nlohmann::ordered_json data) = 0;
};

// One that ends with the process.
class MemorySession final : public SessionLog {
 public:
  explicit MemorySession(Session session) : session_(std::move(session)) {}
  const Session& session() const override { return session_; }
  void append(std::string type, nlohmann::ordered_json data) override {
    // Of what happens in a session only its mode is asked for again.
    if (type == kSandboxModeEvent)
      session_.events.push_back({std::move(type), data.value("mode", std::string())});
  }

 private:
  Session session_;
};

}  // namespace stockade
