// SPDX-License-Identifier: MIT
// `stockade doctor`: which backends work here, which do not, why, and what to do about it.
#include "sandbox/doctor.hpp"

#include <iostream>
#include <nlohmann/json.hpp>

#include "framework/json.hpp"
#include "host/commands.hpp"

namespace stockade {

namespace {

nlohmann::json to_json(const DoctorReport& report) {
  auto backends = nlohmann::json::array();
  for (const auto& one : report.backends) {
    nlohmann::json entry{{"backend", one.backend},
                         {"usable", one.usable},
                         {"reasons", one.reasons},
                         {"advice", one.advice}};
    if (one.usable) entry["enforcement"] = to_string(one.enforcement);
    backends.push_back(std::move(entry));
  }
  return {{"healthy", report.healthy()},
          {"chosen", report.chosen.empty() ? nlohmann::json() : nlohmann::json(report.chosen)},
          {"kernel", report.kernel},
          {"uid", report.user},
          {"landlockAbi", report.landlock_abi},
          {"backends", std::move(backends)}};
}

void print(const DoctorReport& report) {
  std::cout << "kernel " << report.kernel << ", uid " << report.user << ", Landlock ";
  if (report.landlock_abi > 0)
    std::cout << "ABI " << report.landlock_abi << "\n\n";
  else
    std::cout << "absent\n\n";
  for (const auto& one : report.backends) {
    std::cout << one.backend << ": "
              << (one.usable ? "works, enforcement " + to_string(one.enforcement)
                             : std::string("does not work"))
              << (one.backend == report.chosen ? " (used by default)" : "") << '\n';
    for (const auto& reason : one.reasons)
      std::cout << (one.usable ? "  open: " : "  why: ") << reason << '\n';
    for (const auto& step : one.advice) std::cout << "  do:  " << step << '\n';
  }
  std::cout << '\n'
            << (report.healthy()         ? "Confined commands run with full enforcement."
                : !report.chosen.empty() ? "Confined commands run, but no backend enforces fully."
                                         : "No backend works: every confined command is refused.")
            << '\n';
}

}  // namespace

int examine_host(const DoctorOptions& options) {
  try {
    Host host(options.composition);
    auto doctor = host.service<SandboxDoctor>();
    DoctorReport report = host.run(doctor->examine());
    if (options.json)
      std::cout << json_text(to_json(report)) << '\n';
    else
      print(report);
    std::cout.flush();
    return report.healthy() ? 0 : 1;
  } catch (...) {
    return report_failure(std::current_exception());
  }
}

}  // namespace stockade
