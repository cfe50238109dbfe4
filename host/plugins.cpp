// SPDX-License-Identifier: MIT
// `stockade plugins`: the tree of fibers, and what waits for what.
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bash-sandbox/shell.hpp"
#include "framework/report.hpp"
#include "host/commands.hpp"

namespace stockade {

namespace {

std::string calls_line(const Context& context) {
  auto shell = context.find<Shell>();
  if (!shell) return {};
  const ShellLoad load = shell->load();
  return "calls: " + std::to_string(load.running) + " running, at most " +
         std::to_string(load.limit) + ", " + std::to_string(load.queued) + " queued, " +
         std::to_string(load.background) + " in the background\n";
}

}  // namespace

int list_plugins(const PluginsOptions& options) {
  try {
    Host host(options.composition, options.wait);
    const FiberReport report = report_of(*host.context().fiber());
    switch (options.format) {
      case PluginsFormat::text:
        std::cout << report_text(report) << calls_line(host.context());
        break;
      case PluginsFormat::json:
        std::cout << report_json(report).dump(2) << '\n';
        break;
      case PluginsFormat::mermaid:
        std::cout << report_mermaid(report);
        break;
    }
    std::cout.flush();
    if (host.settled()) return 0;
    std::cerr << "stockade: not all plugins came to rest within " << options.wait.count() << " ms"
              << std::endl;
    std::_Exit(1);  // a load is never interrupted, and one of these does not end
  } catch (...) {
    return report_failure(std::current_exception());
  }
}

}  // namespace stockade
