// SPDX-License-Identifier: MIT
#include "framework/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace stockade {

struct Log::Impl {
  spdlog::logger logger;
};

namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::trace:
      return spdlog::level::trace;
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      return spdlog::level::off;
  }
  return spdlog::level::warn;
}

}  // namespace

Log::Log(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Log Log::standard_error(LogLevel level) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_st>();
  auto impl = std::make_shared<Impl>(Impl{spdlog::logger("stockade", std::move(sink))});
  impl->logger.set_level(to_spdlog(level));
  impl->logger.set_pattern("%n: %l: %v");
  return Log(std::move(impl));
}

Log Log::named(std::string_view name) const {
  auto impl = std::make_shared<Impl>(Impl{spdlog::logger(
      std::string(name), impl_->logger.sinks().begin(), impl_->logger.sinks().end())});
  impl->logger.set_level(impl_->logger.level());
  return Log(std::move(impl));
}

bool Log::enabled(LogLevel level) const {
  return impl_->logger.should_log(to_spdlog(level));
}

namespace {
spdlog::string_view_t view(std::string_view text) {
  return {text.data(), text.size()};
}
}  // namespace

void Log::debug(std::string_view message) const {
  impl_->logger.log(spdlog::level::debug, view(message));
}
void Log::info(std::string_view message) const {
  impl_->logger.log(spdlog::level::info, view(message));
}
void Log::warn(std::string_view message) const {
  impl_->logger.log(spdlog::level::warn, view(message));
}
void Log::error(std::string_view message) const {
  impl_->logger.log(spdlog::level::err, view(message));
}

}  // namespace stockade
