// SPDX-License-Identifier: MIT
#include "framework/plugin.hpp"
#include "framework/error.hpp"
#include "plugins/sessions/session_file.hpp"
#include "plugins/sessions/sessions.hpp"

namespace stockade {
namespace {

struct SessionsConfig {
  std::string directory;  // "": below the user's state directory
};

void check(const SessionsConfig& config) {
  if (!config.directory.empty() && config.directory.front() != '/')
    throw Error("CONFIG_INVALID", "sessions: directory must be an absolute path", "$.directory");
}

class FileSessions final : public Sessions {
 public:
  FileSessions(std::string directory, Log log)
      : directory_(std::move(directory)), log_(std::move(log)) {}

  std::shared_ptr<SessionLog> open(const std::string& id, std::optional<std::string> cwd,
                                   const std::vector<std::string>& writable_roots) override {
    auto session =
        std::make_shared<FileSession>(directory_.empty() ? default_session_directory() : directory_,
                                      id, std::move(cwd), writable_roots);
    if (auto torn = session->opening().torn_bytes; torn > 0)
      log_.warn("the last line of " + session->path() + " was not finished; " +
                std::to_string(torn) + " bytes of it were dropped");
    return session;
  }

 private:
  std::string directory_;
  Log log_;
};

Task<> apply(Context context, SessionsConfig config) {
  context.provide<Sessions>(
      std::make_shared<FileSessions>(std::move(config.directory), context.log()));
  co_return;
}

}  // namespace
}  // namespace stockade

STOCKADE_PLUGIN("sessions", ({}), stockade::apply, stockade::check)
