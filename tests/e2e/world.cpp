// SPDX-License-Identifier: MIT
#include "tests/e2e/world.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>

namespace stockade::test {

namespace {
constexpr uid_t kUnprivileged = 1000;
}

std::string installation() {
  std::string prefix = read_file(STOCKADE_PREFIX_FILE);
  if (prefix.empty())
    throw std::runtime_error("there is no installation; run the tests through ctest");
  prefix.pop_back();
  return prefix;
}

std::vector<uid_t> users() {
  if (geteuid() == 0) return {0, kUnprivileged};
  return {geteuid()};
}

World::World(std::string backend_name, uid_t user)
    : backend(std::move(backend_name)), uid(user), scratch_("/var/tmp") {
  for (const std::string& directory : {scratch_.path(), workspace(), outside()}) {
    mkdir(directory.c_str(), 0755);
    if (geteuid() == 0 && chown(directory.c_str(), uid, uid) != 0)
      throw std::runtime_error("cannot give " + directory + " to the test's user");
  }
}

std::string World::outside_file(const std::string& name, const std::string& content) const {
  std::string path = outside() + "/" + name;
  write_file(path, content);
  if (geteuid() == 0 && chown(path.c_str(), uid, uid) != 0)
    throw std::runtime_error("chown " + path);
  return path;
}

ProgramResult World::stockade(const std::vector<std::string>& arguments,
                              ProgramOptions options) const {
  std::vector<std::string> argv{prefix + "/bin/stockade"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  if (geteuid() == 0) options.uid = uid;
  if (options.cwd == "/") options.cwd = workspace();
  return run_program(argv, options);
}

ProgramResult World::exec(const std::vector<std::string>& options,
                          const std::string& command) const {
  std::vector<std::string> arguments{"exec"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", command});
  return stockade(arguments);
}

nlohmann::json World::json(const std::string& mode, const std::string& command,
                           std::vector<std::string> options) const {
  options.insert(options.begin(),
                 {"--json", "--mode", mode, "--backend", backend, "--workspace", workspace()});
  ProgramResult result = exec(options, command);
  INFO("stderr: " << result.err << "\nstdout: " << result.out);
  REQUIRE_FALSE(result.timed_out);
  REQUIRE(result.out.find('\n') == result.out.size() - 1);
  auto json = nlohmann::json::parse(result.out, nullptr, false);
  REQUIRE(json.is_object());
  json["status"] = result.status;
  return json;
}

void for_each_user(const std::string& backend, const std::function<void(const World&)>& test) {
  for (uid_t uid : users()) {
    INFO("backend " << backend << ", uid " << uid);
    World world(backend, uid);
    test(world);
  }
}

}  // namespace stockade::test
