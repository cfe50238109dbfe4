// SPDX-License-Identifier: MIT
// The border between the host and a plugin's shared object: one C entry point that returns a
// descriptor. The smallest plugin is a config struct, a coroutine and STOCKADE_PLUGIN.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/config.hpp"
#include "framework/context.hpp"

namespace stockade {

// Raised by every change of a type that crosses the border.
inline constexpr std::uint32_t kPluginAbi = 1;
inline constexpr std::uint64_t kPluginMagic = 0x6564616b636f7473;  // "stockade", little-endian

// What must be equal on both sides besides the ABI number. JSON values cross the border, so the
// JSON library's version is part of it.
#define STOCKADE_TEXT_(x) #x
#define STOCKADE_TEXT(x) STOCKADE_TEXT_(x)
#if defined(__GLIBCXX__)
#define STOCKADE_STDLIB_ "libstdc++-cxx11-" STOCKADE_TEXT(_GLIBCXX_USE_CXX11_ABI)
#else
#define STOCKADE_STDLIB_ "other-stdlib"
#endif
inline constexpr const char kPluginFingerprint[] =
    STOCKADE_STDLIB_ " json-" STOCKADE_TEXT(NLOHMANN_JSON_VERSION_MAJOR) "." STOCKADE_TEXT(
        NLOHMANN_JSON_VERSION_MINOR) "." STOCKADE_TEXT(NLOHMANN_JSON_VERSION_PATCH);

// The first three members never move; they are read before anything else is trusted.
struct PluginDescriptor {
  std::uint64_t magic;
  std::uint32_t abi;
  const char* fingerprint;
  void (*define)(PluginDefinition& out);
};

namespace detail {

template <class Config>
void define_plugin(PluginDefinition& out, std::string name, std::vector<std::string> inject,
                   Task<> (*apply)(Context, Config),
                   std::type_identity_t<void (*)(const Config&)> check) {
  out.name = std::move(name);
  out.inject = std::move(inject);
  std::string source = out.name;
  out.check_config = [source, check](const nlohmann::json& json) {
    auto config = read_config<Config>(json.is_null() ? nlohmann::json::object() : json, source);
    if (check) check(config);
  };
  out.apply = [source, apply](Context context, const nlohmann::json& json) {
    return apply(std::move(context),
                 read_config<Config>(json.is_null() ? nlohmann::json::object() : json, source));
  };
}

}  // namespace detail

}  // namespace stockade

// STOCKADE_PLUGIN("clock", ({"sandbox/1"}), apply) or, with a check beyond types,
// STOCKADE_PLUGIN("clock", ({}), apply, check), where `Task<> apply(Context, Config)` and
// `void check(const Config&)`. Once in a shared object, outside every namespace.
#define STOCKADE_UNWRAP_(...) __VA_ARGS__
#define STOCKADE_PLUGIN(name, inject, ...) STOCKADE_PLUGIN_(name, inject, __VA_ARGS__, nullptr, )
#define STOCKADE_PLUGIN_(name, inject, apply, check, ...)                                    \
  extern "C" STOCKADE_API const stockade::PluginDescriptor* stockade_plugin() {              \
    static constexpr stockade::PluginDescriptor descriptor{                                  \
        stockade::kPluginMagic, stockade::kPluginAbi, stockade::kPluginFingerprint,          \
        [](stockade::PluginDefinition& out) {                                                \
          stockade::detail::define_plugin(out, name, STOCKADE_UNWRAP_ inject, apply, check); \
        }};                                                                                  \
    return &descriptor;                                                                      \
  }
