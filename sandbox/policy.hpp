// SPDX-License-Identifier: MIT
// Which file effects one call may have: the modes, the policy that travels with a call, and the
// service that resolves it. The last place with defaults on the call path.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/session.hpp"

namespace stockade {

// File effects only; network and process visibility are outside this vocabulary. `read_only`
// permits required sinks such as /dev/null; `workspace_write` also the workspace and the backend's
// temporary area; `danger_full_access` bypasses confinement.
enum class SandboxMode { read_only, workspace_write, danger_full_access };

// The modes that can reach a provider. A type of its own, so that handing `danger_full_access` to
// one does not compile.
enum class ConfinedSandboxMode { read_only, workspace_write };

// `full`: the backend governs every file effect that the mode promises, metadata included, on this
// host and for this user. `partial`: it governs a subset; who needs the absolute boundary refuses
// it.
enum class SandboxEnforcement { full, partial };

SandboxMode to_mode(ConfinedSandboxMode mode) noexcept;
std::optional<ConfinedSandboxMode> to_confined(SandboxMode mode) noexcept;
std::string to_string(SandboxMode mode);  // `workspace-write`
std::string to_string(ConfinedSandboxMode mode);
std::string to_string(SandboxEnforcement enforcement);
std::optional<SandboxMode> parse_mode(std::string_view text);

// What an operator adds to the modes, or takes from them, outside their vocabulary. A backend
// enforces all of it or refuses the call; `danger_full_access` knows none of it.
struct SandboxExtras {
  std::vector<std::string> writable_roots;  // written like the workspace in workspace-write
  // Stay read-only, and where they are, though they lie in what may be written. One that does not
  // exist when the call starts may be made by it: nothing is put in its place on the host.
  std::vector<std::string> protected_paths;
  std::vector<std::string> hidden_paths;  // empty inside, in both modes
  bool network = true;                    // false: a network of its own with only a loopback

  bool empty() const noexcept {
    return writable_roots.empty() && protected_paths.empty() && hidden_paths.empty() && network;
  }
};

// Resolved once a call, before the enforcement path is chosen; the root is carried under modes that
// do not consume it, too.
struct SandboxExecutionPolicy {
  SandboxMode mode = SandboxMode::read_only;
  std::string workspace_root;  // absolute, canonical where it exists
  std::optional<std::string> session_id;
  std::shared_ptr<const SandboxExtras> extras{};  // absolute, canonical paths; null: none
};

struct SandboxPolicyRequest {
  const Session* session = nullptr;   // its immutable cwd becomes the boundary
  std::optional<SandboxMode> mode{};  // explicitly approved; outranks the session's
};

// What one confined execution may touch. Carried per call, so that two consumers can confine
// differently at the same instant; a provider treats it as fully specified.
struct SandboxPolicy {
  ConfinedSandboxMode mode;
  std::string workspace_root;
  // Whose temporary area it is: calls of one session find their files in /tmp again.
  std::optional<std::string> session_id{};
  std::shared_ptr<const SandboxExtras> extras{};
};

// `ctx.sandboxPolicy`.
class SandboxPolicyResolver {
 public:
  static constexpr std::string_view service = "sandboxPolicy/1";
  virtual ~SandboxPolicyResolver() = default;

  // Mode: explicit, else the session's last `sandbox/mode` event, else the deployment's default.
  // Root: the session's cwd, else the deployment's.
  virtual SandboxExecutionPolicy resolve(const SandboxPolicyRequest& request) const = 0;
  virtual SandboxMode default_mode() const = 0;
};

struct SandboxPolicyConfig {
  SandboxMode mode = SandboxMode::read_only;
  std::string workspace_root;  // "": the working directory of the host
  // SandboxExtras; a relative path is one below the workspace of the call.
  std::vector<std::string> writable_roots{};
  std::vector<std::string> protected_paths{};
  std::vector<std::string> hidden_paths{};
  bool network = true;
};

class SandboxPolicyService final : public SandboxPolicyResolver {
 public:
  explicit SandboxPolicyService(const SandboxPolicyConfig& config);
  SandboxExecutionPolicy resolve(const SandboxPolicyRequest& request) const override;
  SandboxMode default_mode() const override { return mode_; }

 private:
  SandboxMode mode_;
  std::string workspace_root_;
  SandboxExtras extras_;  // as configured
};

}  // namespace stockade
