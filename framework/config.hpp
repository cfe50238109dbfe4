// SPDX-License-Identifier: MIT
// JSON into plain aggregates. A config struct is its own schema: fields are keys (snake_case in
// C++, camelCase in JSON), initialisers are defaults, an unknown key is an error. All errors of a
// document are found in one pass, each with its JSON path, what was expected and what was found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/error.hpp"
#include "framework/fields.hpp"

namespace stockade {

struct ConfigIssue {
  std::string path;     // `$.plugins[2].config.timeoutMs`
  std::string message;  // what was expected and what was found
};

// Throws Error `CONFIG_INVALID` that lists every issue; does nothing without one.
// `source` names the document (a file, an entry).
STOCKADE_API void throw_config_issues(std::string_view source,
                                      const std::vector<ConfigIssue>& issues);

// Parses a document. Duplicate keys, a byte order mark, an empty document and nesting beyond 64
// levels are errors, malformed JSON one with line and column. `source` names it in the message.
STOCKADE_API nlohmann::json parse_config(std::string_view text, std::string_view source);

namespace detail {

STOCKADE_API std::string describe_json(const nlohmann::json& value);  // `the number 5`

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};
template <class T>
struct is_string_map : std::false_type {};
template <class T>
struct is_string_map<std::map<std::string, T>> : std::true_type {};

class ConfigReader {
 public:
  explicit ConfigReader(std::vector<ConfigIssue>& issues) : issues_(issues) {}

  template <class T>
  void read(const nlohmann::json& json, const std::string& path, T& out) {
    if constexpr (std::is_same_v<T, nlohmann::json>) {
      out = json;
    } else if constexpr (is_optional<T>::value) {
      if (json.is_null()) {
        out.reset();
      } else {
        out.emplace();
        read(json, path, *out);
      }
    } else if constexpr (std::is_same_v<T, bool>) {
      if (json.is_boolean())
        out = json.get<bool>();
      else
        expected(path, "true or false", json);
    } else if constexpr (std::is_enum_v<T>) {
      read_enum(json, path, out);
    } else if constexpr (std::is_integral_v<T>) {
      read_integer(json, path, out);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (json.is_number())
        out = json.get<T>();
      else
        expected(path, "a number", json);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (json.is_string())
        out = json.get<std::string>();
      else
        expected(path, "a string", json);
    } else if constexpr (is_vector<T>::value) {
      if (!json.is_array()) return expected(path, "an array", json);
      out.clear();
      for (std::size_t i = 0; i < json.size(); ++i) {
        out.emplace_back();
        read(json[i], path + "[" + std::to_string(i) + "]", out.back());
      }
    } else if constexpr (is_string_map<T>::value) {
      if (!json.is_object()) return expected(path, "an object", json);
      out.clear();
      for (const auto& item : json.items())
        read(item.value(), path + "." + item.key(), out[item.key()]);
    } else {
      static_assert(std::is_aggregate_v<T>, "a config type is a plain aggregate");
      read_aggregate(json, path, out);
    }
  }

 private:
  template <class T>
  void read_aggregate(const nlohmann::json& json, const std::string& path, T& out) {
    if (!json.is_object()) return expected(path, "an object", json);
    std::vector<std::string> keys;
    for (std::string_view name : kFieldNames<T>) keys.push_back(json_key(name));
    for (const auto& item : json.items())
      if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
        issues_.push_back({path + "." + item.key(), "unknown key" + suggestion(item.key(), keys)});
    boost::pfr::for_each_field(out, [&](auto& field, std::size_t i) {
      if (auto found = json.find(keys[i]); found != json.end())
        read(*found, path + "." + keys[i], field);
    });
  }

  template <class T>
  void read_enum(const nlohmann::json& json, const std::string& path, T& out) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < kEnumerators<T>.size(); ++i) {
      std::string name = enum_name(static_cast<T>(i));
      if (name.empty()) continue;
      if (json.is_string() && json.get_ref<const std::string&>() == name) {
        out = static_cast<T>(i);
        return;
      }
      names.push_back(name);
    }
    std::string list;
    for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
    std::string hint;
    if (json.is_string())
      if (std::string near = nearest(json.get<std::string>(), names); !near.empty())
        hint = " (did you mean \"" + near + "\"?)";
    issues_.push_back({path, "expected one of " + list + ", found " + describe_json(json) + hint});
  }

  template <class T>
  void read_integer(const nlohmann::json& json, const std::string& path, T& out) {
    if (json.is_number_unsigned()) {
      if (auto value = json.get<std::uint64_t>(); std::in_range<T>(value)) {
        out = static_cast<T>(value);
        return;
      }
    } else if (json.is_number_integer()) {  // negative, or made in code from a signed value
      if (auto value = json.get<std::int64_t>(); std::in_range<T>(value)) {
        out = static_cast<T>(value);
        return;
      }
    }
    expected(path, std::is_signed_v<T> ? "a whole number" : "a whole number that is not negative",
             json);
  }

  void expected(const std::string& path, std::string_view what, const nlohmann::json& found) {
    issues_.push_back({path, "expected " + std::string(what) + ", found " + describe_json(found)});
  }

  std::vector<ConfigIssue>& issues_;
};

}  // namespace detail

// Reads `json` into a T that begins with its defaults, collecting issues below `path`.
template <class T>
T read_config(const nlohmann::json& json, std::vector<ConfigIssue>& issues,
              const std::string& path = "$") {
  T value{};
  detail::ConfigReader(issues).read(json, path, value);
  return value;
}

// The same, throwing Error `CONFIG_INVALID` for any issue.
template <class T>
T read_config(const nlohmann::json& json, std::string_view source, const std::string& path = "$") {
  std::vector<ConfigIssue> issues;
  T value = read_config<T>(json, issues, path);
  throw_config_issues(source, issues);
  return value;
}

}  // namespace stockade
