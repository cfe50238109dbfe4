// SPDX-License-Identifier: MIT
// JSON into plain aggregates. A config struct is its own schema: fields are keys (snake_case in
// C++, camelCase in JSON), initialisers are defaults, an unknown key is an error. All errors of a
// document are found in one pass, each with its JSON path, what was expected and what was found.
//
// A duration is a std::chrono type whose field, and so whose key, ends in its unit: `timeout_ms`. A
// variant takes what one of its alternatives takes, tried in order. What the types cannot say
// stands beside the struct, as a function that is found by the type of its argument (see
// ConfigRules):
//
//   inline void rules(ConfigRules<ClockConfig>& rules) {
//     rules.range(&ClockConfig::tick_ms, 1, 60000).describe(&ClockConfig::tick_ms, "between
//     ticks");
//   }
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
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
// `operand` is the error's, where `source` is more than the document's name.
STOCKADE_API nlohmann::json parse_config(std::string_view text, std::string_view source,
                                         std::string_view operand = {});

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
template <class T>
struct is_variant : std::false_type {};
template <class... T>
struct is_variant<std::variant<T...>> : std::true_type {};
template <class T>
struct is_duration : std::false_type {};
template <class Rep, class Period>
struct is_duration<std::chrono::duration<Rep, Period>> : std::true_type {};

// The end of the name of a field that holds a T.
template <class T>
constexpr std::string_view unit_suffix() {
  if constexpr (std::is_same_v<typename T::period, std::micro>)
    return "_us";
  else if constexpr (std::is_same_v<typename T::period, std::milli>)
    return "_ms";
  else if constexpr (std::is_same_v<typename T::period, std::ratio<1>>)
    return "_s";
  else
    return "?";
}

// Where `field` stands among the fields of its struct.
template <class T, class M>
std::size_t field_index(M T::*field) {
  const T sample{};
  const void* wanted = &(sample.*field);
  std::size_t index = 0;
  boost::pfr::for_each_field(sample, [&](const auto& candidate, std::size_t i) {
    if (static_cast<const void*>(&candidate) == wanted) index = i;
  });
  return index;
}

template <class T>
const auto& counted(const T& value) {
  return value;
}
template <class Rep, class Period>
Rep counted(const std::chrono::duration<Rep, Period>& value) {
  return value.count();
}

}  // namespace detail

// What is required of the fields of T beyond their types, and what a schema says of them. An empty
// optional meets every rule.
template <class T>
class ConfigRules {
 public:
  struct Rule {
    std::size_t field;
    std::string expected;  // `a number from 1 to 10`; empty: no requirement
    std::function<bool(const T& config)> holds;
    nlohmann::ordered_json schema;  // added to that of the field
  };

  // Of numbers and durations, both ends included.
  template <class M, class V>
  ConfigRules& range(M T::*field, V least, V most) {
    return check(field, "a number from " + std::to_string(least) + " to " + std::to_string(most),
                 [least, most](const auto& value) {
                   return !(detail::counted(value) < least) && !(most < detail::counted(value));
                 },
                 {{"minimum", least}, {"maximum", most}});
  }
  template <class M, class V>
  ConfigRules& at_least(M T::*field, V least) {
    return check(field, "a number of at least " + std::to_string(least),
                 [least](const auto& value) { return !(detail::counted(value) < least); },
                 {{"minimum", least}});
  }
  template <class M>
  ConfigRules& absolute_path(M T::*field) {
    return check(field, "an absolute path",
                 [](const std::string& value) { return value.substr(0, 1) == "/"; },
                 {{"pattern", "^/"}});
  }
  template <class M>
  ConfigRules& not_empty(M T::*field) {
    return check(field, "something that is not empty",
                 [](const auto& value) { return !value.empty(); }, {});
  }
  // `holds` takes the field's value, inside its optional; `schema` is what a schema can say of it.
  template <class M, class F>
  ConfigRules& check(M T::*field, std::string expected, F holds,
                     nlohmann::ordered_json schema = {}) {
    rules_.push_back({detail::field_index(field), std::move(expected),
                      [field, holds = std::move(holds)](const T& config) {
                        if constexpr (detail::is_optional<M>::value)
                          return !(config.*field) || holds(*(config.*field));
                        else
                          return holds(config.*field);
                      },
                      std::move(schema)});
    return *this;
  }
  template <class M>
  ConfigRules& describe(M T::*field, std::string text) {
    rules_.push_back({detail::field_index(field), {}, {}, {{"description", std::move(text)}}});
    return *this;
  }

  const std::vector<Rule>& list() const noexcept { return rules_; }

 private:
  std::vector<Rule> rules_;
};

template <class T>
ConfigRules<T> config_rules() {
  ConfigRules<T> all;
  if constexpr (requires { rules(all); }) rules(all);
  return all;
}

namespace detail {

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
    } else if constexpr (is_variant<T>::value) {
      read_variant(json, path, out);
    } else if constexpr (is_duration<T>::value) {
      std::uint32_t count = 0;  // within what a timer can wait
      read_integer(json, path, count);
      out = T(count);
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
    std::vector<bool> sound(keys.size(), true);
    boost::pfr::for_each_field(out, [&](auto& field, auto index) {
      using Field = std::remove_reference_t<decltype(field)>;
      constexpr std::size_t i = decltype(index)::value;
      if constexpr (is_duration<Field>::value)
        static_assert(kFieldNames<T>[i].ends_with(unit_suffix<Field>()),
                      "the name of a duration ends in its unit: _us, _ms or _s");
      auto found = json.find(keys[i]);
      if (found == json.end()) return;
      const std::size_t before = issues_.size();
      read(*found, path + "." + keys[i], field);
      sound[i] = issues_.size() == before;
    });
    const ConfigRules<T> all = config_rules<T>();
    for (const auto& rule : all.list())
      if (rule.holds && sound[rule.field] && !rule.holds(out)) {
        sound[rule.field] = false;
        auto found = json.find(keys[rule.field]);
        expected(path + "." + keys[rule.field], rule.expected,
                 found == json.end() ? nlohmann::json() : *found);
      }
  }

  // The first alternative without an issue; else the issues of the one that came nearest.
  template <class... T>
  void read_variant(const nlohmann::json& json, const std::string& path, std::variant<T...>& out) {
    std::vector<ConfigIssue> nearest_issues;
    std::vector<std::string> wanted;
    bool read_one = false;
    auto attempt = [&]<class Alternative>(Alternative value) {
      if (read_one) return;
      std::vector<ConfigIssue> issues;
      ConfigReader(issues).read(json, path, value);
      if (issues.empty()) {
        out = std::move(value);
        read_one = true;
        return;
      }
      // Refused as a whole, it is not even of the right kind.
      const ConfigIssue& first = issues.front();
      if (first.path != path) {
        if (nearest_issues.empty() || issues.size() < nearest_issues.size())
          nearest_issues = issues;
        return;
      }
      constexpr std::string_view kExpected = "expected ";
      const std::string what = first.message.substr(0, first.message.find(", found "));
      if (what.starts_with(kExpected)) wanted.push_back(what.substr(kExpected.size()));
    };
    (attempt(T{}), ...);
    if (read_one) return;
    if (!nearest_issues.empty()) {
      issues_.insert(issues_.end(), nearest_issues.begin(), nearest_issues.end());
      return;
    }
    std::string text;
    for (const auto& each : wanted) text += (text.empty() ? "" : " or ") + each;
    expected(path, text, json);
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
