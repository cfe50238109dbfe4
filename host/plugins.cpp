// SPDX-License-Identifier: MIT
// `stockade plugins`: the tree of fibers.
#include <iostream>

#include "bash-sandbox/shell.hpp"
#include "framework/fields.hpp"
#include "host/commands.hpp"

namespace stockade {

namespace {

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

void print_fiber(const Fiber& fiber, const std::string& indent) {
  std::cout << indent << fiber.name() << "  " << enum_name(fiber.state());
  if (auto provides = fiber.provides(); !provides.empty())
    std::cout << "  provides " << list(provides);
  if (!fiber.inject().empty()) std::cout << "  needs " << list(fiber.inject());
  if (auto missing = fiber.waiting_for(); !missing.empty())
    std::cout << "  waits for " << list(missing);
  std::cout << '\n';
  for (const auto& child : fiber.children()) print_fiber(*child, indent + "  ");
}

}  // namespace

int list_plugins(const CompositionOptions& options) {
  try {
    Host host(options);
    print_fiber(*host.context().fiber(), "");
    if (auto shell = host.context().find<Shell>()) {
      const ShellLoad load = shell->load();
      std::cout << "calls: " << load.running << " running, at most " << load.limit << ", "
                << load.queued << " queued, " << load.background << " in the background\n";
    }
    std::cout.flush();
    return 0;
  } catch (...) {
    return report_failure(std::current_exception());
  }
}

}  // namespace stockade
