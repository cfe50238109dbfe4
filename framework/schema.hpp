// SPDX-License-Identifier: MIT
// The JSON Schema (2020-12) of a config struct: its keys, types, defaults and rules, for editors
// and validators. What read_config accepts, it accepts, and the other way round as far as a schema
// can say.
#pragma once

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "framework/config.hpp"
#include "framework/fields.hpp"

namespace stockade {

inline constexpr const char kSchemaDialect[] = "https://json-schema.org/draft/2020-12/schema";

namespace detail {

template <class T>
consteval auto type_text() {
  return std::string_view{__PRETTY_FUNCTION__};
}

// A value as a config would give it.
template <class T>
nlohmann::ordered_json config_json(const T& value) {
  if constexpr (std::is_same_v<T, nlohmann::json>) {
    return value;
  } else if constexpr (is_optional<T>::value) {
    return value ? config_json(*value) : nlohmann::ordered_json(nullptr);
  } else if constexpr (is_variant<T>::value) {
    return std::visit([](const auto& each) { return config_json(each); }, value);
  } else if constexpr (is_duration<T>::value) {
    return value.count();
  } else if constexpr (std::is_enum_v<T>) {
    return enum_name(value);
  } else if constexpr (is_vector<T>::value) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& each : value) out.push_back(config_json(each));
    return out;
  } else if constexpr (is_string_map<T>::value) {
    auto out = nlohmann::ordered_json::object();
    for (const auto& [key, each] : value) out[key] = config_json(each);
    return out;
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else {
    auto out = nlohmann::ordered_json::object();
    boost::pfr::for_each_field(value, [&](const auto& field, std::size_t i) {
      out[json_key(kFieldNames<T>[i])] = config_json(field);
    });
    return out;
  }
}

class SchemaWriter {
 public:
  template <class T>
  nlohmann::ordered_json schema(const T& example) {
    using Json = nlohmann::ordered_json;
    if constexpr (std::is_same_v<T, nlohmann::json>) {
      return Json::object();
    } else if constexpr (is_optional<T>::value) {
      return {{"anyOf", {schema(typename T::value_type{}), Json{{"type", "null"}}}}};
    } else if constexpr (is_variant<T>::value) {
      return variant(example);
    } else if constexpr (is_duration<T>::value) {
      return {{"type", "integer"},
              {"minimum", 0},
              {"maximum", std::numeric_limits<std::uint32_t>::max()}};
    } else if constexpr (std::is_same_v<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::is_enum_v<T>) {
      Json names = Json::array();
      for (std::size_t i = 0; i < kEnumerators<T>.size(); ++i)
        if (std::string name = enum_name(static_cast<T>(i)); !name.empty()) names.push_back(name);
      return {{"enum", std::move(names)}};
    } else if constexpr (std::is_integral_v<T>) {
      return {{"type", "integer"},
              {"minimum", std::numeric_limits<T>::min()},
              {"maximum", std::numeric_limits<T>::max()}};
    } else if constexpr (std::is_floating_point_v<T>) {
      return {{"type", "number"}};
    } else if constexpr (std::is_same_v<T, std::string>) {
      return {{"type", "string"}};
    } else if constexpr (is_vector<T>::value) {
      return {{"type", "array"}, {"items", schema(typename T::value_type{})}};
    } else if constexpr (is_string_map<T>::value) {
      return {{"type", "object"}, {"additionalProperties", schema(typename T::mapped_type{})}};
    } else {
      return aggregate(example);
    }
  }

  nlohmann::ordered_json definitions{};  // of types that contain themselves, by name

 private:
  template <class... T>
  nlohmann::ordered_json variant(const std::variant<T...>&) {
    return {{"anyOf", nlohmann::ordered_json::array({schema(T{})...})}};
  }

  template <class T>
  nlohmann::ordered_json aggregate(const T& example) {
    const std::string name(last_identifier(type_text<T>()));
    const nlohmann::ordered_json reference = {{"$ref", "#/$defs/" + name}};
    if (auto open = open_.find(name); open != open_.end()) {
      open->second = true;
      return reference;
    }
    open_[name] = false;
    auto properties = nlohmann::ordered_json::object();
    boost::pfr::for_each_field(example, [&](const auto& field, std::size_t i) {
      auto property = schema(field);
      if (auto value = config_json(field); !value.is_null()) property["default"] = std::move(value);
      properties[json_key(kFieldNames<T>[i])] = std::move(property);
    });
    const ConfigRules<T> all = config_rules<T>();
    for (const auto& rule : all.list())
      properties[json_key(kFieldNames<T>[rule.field])].update(
          rule.schema.is_null() ? nlohmann::ordered_json::object() : rule.schema);
    nlohmann::ordered_json out = {
        {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
    const bool recursive = open_[name];
    open_.erase(name);
    if (!recursive) return out;
    definitions[name] = std::move(out);
    return reference;
  }

  std::map<std::string, bool> open_;  // being written: whether it was met again
};

}  // namespace detail

template <class T>
nlohmann::ordered_json schema_of() {
  detail::SchemaWriter writer;
  nlohmann::ordered_json out = {{"$schema", kSchemaDialect}};
  out.update(writer.schema(T{}));
  if (!writer.definitions.is_null()) out["$defs"] = std::move(writer.definitions);
  return out;
}

}  // namespace stockade
