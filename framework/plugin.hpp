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
#include "framework/schema.hpp"
#include "framework/version.hpp"

namespace stockade {

// Raised by every change of a type that crosses the border.
inline constexpr std::uint32_t kPluginAbi = 2;
inline constexpr std::uint64_t kPluginMagic = 0x6564616b636f7473;  // "stockade", little-endian

// What must be equal on both sides besides the ABI number: the framework's own types, and those of
// the standard and the JSON library, cross the border.
#define STOCKADE_TEXT_(x) #x
#define STOCKADE_TEXT(x) STOCKADE_TEXT_(x)
#if defined(__clang__)
#define STOCKADE_COMPILER_ "clang-" STOCKADE_TEXT(__clang_major__)
#else
#define STOCKADE_COMPILER_ "g++-" STOCKADE_TEXT(__GNUC__)
#endif
#if defined(_GLIBCXX_DEBUG)
#define STOCKADE_STDLIB_ "libstdc++-debug-cxx11-" STOCKADE_TEXT(_GLIBCXX_USE_CXX11_ABI)
#elif defined(__GLIBCXX__)
#define STOCKADE_STDLIB_ "libstdc++-cxx11-" STOCKADE_TEXT(_GLIBCXX_USE_CXX11_ABI)
#else
#define STOCKADE_STDLIB_ "other-stdlib"
#endif
inline constexpr const char kPluginFingerprint[] =
    "stockade-" STOCKADE_VERSION " " STOCKADE_COMPILER_ " " STOCKADE_STDLIB_
    " json-" STOCKADE_TEXT(NLOHMANN_JSON_VERSION_MAJOR) "." STOCKADE_TEXT(
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
                   std::vector<std::string> provides, Task<> (*apply)(Context, Config),
                   std::type_identity_t<void (*)(const Config&)> check) {
  out.name = std::move(name);
  out.inject = std::move(inject);
  out.provides = std::move(provides);
  auto read = [source = out.name](const nlohmann::json& json) {
    return read_config<Config>(json.is_null() ? nlohmann::json::object() : json, source);
  };
  out.check_config = [read, check](const nlohmann::json& json) {
    auto config = read(json);
    if (check) check(config);
  };
  out.apply = [read, apply](Context context, const nlohmann::json& json) {
    return apply(std::move(context), read(json));
  };
  out.schema = [] { return schema_of<Config>(); };
}

template <class Config>
void define_plugin(PluginDefinition& out, std::string name, std::vector<std::string> inject,
                   Task<> (*apply)(Context, Config),
                   std::type_identity_t<void (*)(const Config&)> check) {
  define_plugin(out, std::move(name), std::move(inject), {}, apply, check);
}

}  // namespace detail

}  // namespace stockade

// STOCKADE_PLUGIN("clock", ({"sandbox/1"}), apply) or, with a check beyond types and rules,
// STOCKADE_PLUGIN("clock", ({"sandbox/1"}), apply, check), where `Task<> apply(Context, Config)`
// and `void check(const Config&)`. The list names the services that it needs; a second one, as in
// ({"sandbox/1"}, {"clock/1"}), those that it provides, which reports show before it has run. Once
// in a shared object, outside every namespace.
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
