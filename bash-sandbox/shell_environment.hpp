// SPDX-License-Identifier: MIT
// `ctx.shellEnvironment`: the STOCKADE_… variables that a command sees. They belong to their
// contributors; nothing else can set them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stockade {

struct ShellVariable {
  std::string name;         // STOCKADE_ and then [A-Z][A-Z0-9_]*
  std::string description;  // for who lists them
};

// Whose call it is.
struct ShellEnvironmentRequest {
  std::optional<std::string> session_id;
};

struct ShellContributor {
  std::string name;
  std::vector<ShellVariable> variables;
  // The values for one call; a variable that is left out is not set.
  std::function<std::map<std::string, std::string>(const ShellEnvironmentRequest&)> collect;
};

class ShellEnvironment {
 public:
  static constexpr std::string_view service = "shellEnvironment/1";
  virtual ~ShellEnvironment() = default;

  // All of it or nothing. Returns what takes it out again; give that to `Context::effect`, so that
  // it leaves with its fiber. Throws Error `SHELL_ENVIRONMENT_INVALID`.
  virtual std::function<void()> add(ShellContributor contributor) = 0;
  // Throws Error `SHELL_ENVIRONMENT_INVALID` for a contributor that breaks its declaration.
  virtual std::map<std::string, std::string> collect(
      const ShellEnvironmentRequest& request) const = 0;
  virtual std::vector<ShellVariable> variables() const = 0;  // sorted by name
};

// With STOCKADE_HOME, STOCKADE_SHELL=1 and, for a session, STOCKADE_SESSION_ID. `home`: "" for the
// host's own STOCKADE_HOME, else ~/.stockade.
class ShellEnvironmentRegistry final : public ShellEnvironment {
 public:
  explicit ShellEnvironmentRegistry(const std::string& home);

  std::function<void()> add(ShellContributor contributor) override;
  std::map<std::string, std::string> collect(const ShellEnvironmentRequest& request) const override;
  std::vector<ShellVariable> variables() const override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace stockade
