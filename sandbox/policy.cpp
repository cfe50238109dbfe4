// SPDX-License-Identifier: MIT
#include "sandbox/policy.hpp"

#include "framework/error.hpp"
#include "framework/fields.hpp"
#include "sandbox/roots.hpp"

namespace stockade {

SandboxMode to_mode(ConfinedSandboxMode mode) noexcept {
  return mode == ConfinedSandboxMode::read_only ? SandboxMode::read_only
                                                : SandboxMode::workspace_write;
}

std::optional<ConfinedSandboxMode> to_confined(SandboxMode mode) noexcept {
  switch (mode) {
    case SandboxMode::read_only:
      return ConfinedSandboxMode::read_only;
    case SandboxMode::workspace_write:
      return ConfinedSandboxMode::workspace_write;
    case SandboxMode::danger_full_access:
      return std::nullopt;
  }
  // A value outside the enum must never be taken for permission to run unconfined.
  return ConfinedSandboxMode::read_only;
}

std::string to_string(SandboxMode mode) {
  return enum_name(mode);
}
std::string to_string(ConfinedSandboxMode mode) {
  return enum_name(mode);
}
std::string to_string(SandboxEnforcement enforcement) {
  return enum_name(enforcement);
}

std::optional<SandboxMode> parse_mode(std::string_view text) {
  for (SandboxMode mode :
       {SandboxMode::read_only, SandboxMode::workspace_write, SandboxMode::danger_full_access})
    if (text == to_string(mode)) return mode;
  return std::nullopt;
}

namespace {

// Each is a mount or two, those that lead to it pinned, and up to nine words of bwrap's command
// line, which ends at 9,000.
constexpr std::size_t kMostPaths = 64;

void check_count(const std::vector<std::string>& paths, const char* field) {
  if (paths.size() > kMostPaths)
    throw Error("CONFIG_INVALID",
                std::string("sandbox: ") + field + " has " + std::to_string(paths.size()) +
                    " paths, more than the " + std::to_string(kMostPaths) +
                    " that every backend can keep; name directories above them",
                std::string("$.") + field);
}

}  // namespace

SandboxPolicyService::SandboxPolicyService(const SandboxPolicyConfig& config)
    : mode_(config.mode),
      workspace_root_(resolve_root(config.workspace_root)),
      extras_{config.writable_roots, config.protected_paths, config.hidden_paths, config.network} {
  check_count(config.writable_roots, "writableRoots");
  check_count(config.protected_paths, "protectedPaths");
  check_count(config.hidden_paths, "hiddenPaths");
}

namespace {

void resolve_below(const std::string& root, std::vector<std::string>& paths) {
  for (auto& path : paths) path = resolve_root(path.starts_with('/') ? path : root + "/" + path);
}

}  // namespace

SandboxExecutionPolicy SandboxPolicyService::resolve(const SandboxPolicyRequest& request) const {
  SandboxExecutionPolicy policy{mode_, workspace_root_, std::nullopt};
  if (request.session) {
    policy.session_id = request.session->id;
    if (request.session->cwd) policy.workspace_root = resolve_root(*request.session->cwd);
    if (auto mode = session_mode(*request.session)) policy.mode = *mode;
  }
  if (request.mode) policy.mode = *request.mode;
  if (!extras_.empty()) {
    SandboxExtras extras = extras_;
    for (auto* paths : {&extras.writable_roots, &extras.protected_paths, &extras.hidden_paths})
      resolve_below(policy.workspace_root, *paths);
    policy.extras = std::make_shared<const SandboxExtras>(std::move(extras));
  }
  return policy;
}

}  // namespace stockade
