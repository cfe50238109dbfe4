// SPDX-License-Identifier: MIT
#include "bash-sandbox/shell_environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

#include "framework/error.hpp"
#include "sandbox/roots.hpp"

namespace stockade {

namespace {

constexpr const char* kHome = "STOCKADE_HOME";
constexpr const char* kShell = "STOCKADE_SHELL";
constexpr const char* kSessionId = "STOCKADE_SESSION_ID";
const char* const kReserved[] = {kHome, kShell, kSessionId};

Error invalid(const std::string& what, const std::string& operand) {
  return Error("SHELL_ENVIRONMENT_INVALID", "bash env " + what, operand);
}

bool valid_name(std::string_view name) {
  constexpr std::string_view prefix = "STOCKADE_";
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  auto letter = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (name.empty() || !letter(name.front())) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

bool blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
}

std::string home_of(const std::string& configured) {
  if (!configured.empty()) return resolve_root(configured);
  if (const char* own = std::getenv(kHome); own && *own) return resolve_root(own);
  const char* home = std::getenv("HOME");
  return resolve_root(std::string(home && *home ? home : "/") + "/.stockade");
}

}  // namespace

struct ShellEnvironmentRegistry::State {
  std::string home;
  std::uint64_t next_id = 0;
  std::map<std::uint64_t, ShellContributor> contributors;  // in the order of registration
};

ShellEnvironmentRegistry::ShellEnvironmentRegistry(const std::string& home)
    : state_(std::make_shared<State>()) {
  state_->home = home_of(home);
}

std::function<void()> ShellEnvironmentRegistry::add(ShellContributor contributor) {
  if (blank(contributor.name)) throw invalid("contributor name must be non-empty", "");
  for (const auto& [id, other] : state_->contributors)
    if (other.name == contributor.name)
      throw invalid("contributor \"" + contributor.name + "\" is already registered",
                    contributor.name);
  std::set<std::string> names;
  for (const auto& variable : contributor.variables) {
    const std::string& name = variable.name;
    const std::string who = "contributor \"" + contributor.name + "\" ";
    if (!valid_name(name)) throw invalid(who + "declared invalid key \"" + name + "\"", name);
    for (const char* reserved : kReserved)
      if (name == reserved) throw invalid(who + "cannot own reserved key \"" + name + "\"", name);
    if (!names.insert(name).second)
      throw invalid(who + "declared key \"" + name + "\" twice", name);
    if (blank(variable.description)) throw invalid(who + "must describe \"" + name + "\"", name);
    for (const auto& [id, other] : state_->contributors)
      for (const auto& owned : other.variables)
        if (owned.name == name)
          throw invalid("key \"" + name + "\" is already owned by contributor \"" + other.name +
                            "\"; contributor \"" + contributor.name + "\" cannot also own it",
                        name);
  }
  const std::uint64_t id = state_->next_id++;
  state_->contributors.emplace(id, std::move(contributor));
  return [weak = std::weak_ptr<State>(state_), id] {
    if (auto state = weak.lock()) state->contributors.erase(id);
  };
}

std::map<std::string, std::string> ShellEnvironmentRegistry::collect(
    const ShellEnvironmentRequest& request) const {
  std::map<std::string, std::string> values{{kHome, state_->home}, {kShell, "1"}};
  if (request.session_id) values[kSessionId] = *request.session_id;
  for (const auto& [id, contributor] : state_->contributors) {
    if (!contributor.collect) continue;
    const auto returned = contributor.collect(request);
    for (const auto& [name, value] : returned) {
      const std::string who = "contributor \"" + contributor.name + "\" ";
      const bool declared =
          std::any_of(contributor.variables.begin(), contributor.variables.end(),
                      [&key = name](const ShellVariable& own) { return own.name == key; });
      if (!declared) throw invalid(who + "returned undeclared key \"" + name + "\"", name);
      if (value.find('\0') != std::string::npos)
        throw invalid(who + "returned a NUL byte in the value for \"" + name + "\"", name);
      values[name] = value;
    }
  }
  return values;
}

std::vector<ShellVariable> ShellEnvironmentRegistry::variables() const {
  std::vector<ShellVariable> all{{kHome, "where stockade keeps what is its own"},
                                 {kSessionId, "the session that the call belongs to"},
                                 {kShell, "1 in every command that stockade runs"}};
  for (const auto& [id, contributor] : state_->contributors)
    all.insert(all.end(), contributor.variables.begin(), contributor.variables.end());
  std::sort(all.begin(), all.end(),
            [](const ShellVariable& a, const ShellVariable& b) { return a.name < b.name; });
  return all;
}

}  // namespace stockade
