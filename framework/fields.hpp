// SPDX-License-Identifier: MIT
// Names of an aggregate's fields and of an enum's values, found at compile time over Boost.PFR, and
// their spelling in JSON. Debian 12's PFR counts and visits fields but cannot name them; the pretty
// name of a function template whose argument is the address of a field can. Works on g++ 12 and
// clang 14; what it cannot do (base classes, C arrays, references, constructors) does not compile.
#pragma once

#include <array>
#include <boost/pfr.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stockade {

namespace detail {

template <class T>
struct FieldProbe {
  T value;
};

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <class T>
extern const FieldProbe<T> field_probe;  // declared, never defined: only addresses inside it count

// clang 14 takes a pointer to a subobject as a template argument only inside a structural class.
template <class P>
struct FieldAddress {
  P pointer;
};
template <class P>
FieldAddress(P) -> FieldAddress<P>;

template <auto Value>
consteval auto pretty() {  // `auto`: g++ appends the expansion of a named return type
  return std::string_view{__PRETTY_FUNCTION__};
}

template <class T, std::size_t I>
consteval auto field_address() {
  return FieldAddress{std::addressof(std::get<I>(boost::pfr::structure_tie(field_probe<T>.value)))};
}

constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

constexpr std::string_view last_identifier(std::string_view s) {
  std::size_t end = s.size();
  while (end > 0 && !is_word(s[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_word(s[begin - 1])) --begin;
  return s.substr(begin, end - begin);
}

template <class T, std::size_t... I>
consteval auto field_names(std::index_sequence<I...>) {
  return std::array<std::string_view, sizeof...(I)>{
      last_identifier(pretty<field_address<T, I>()>())...};
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

// A value without an enumerator is printed as a cast or a number, never as a bare identifier.
template <class E, E Value>
consteval std::string_view enumerator() {
  std::string_view text = pretty<Value>();
  std::string_view name = last_identifier(text);
  std::size_t at = text.rfind(name);
  bool numeric = name.empty() || (name[0] >= '0' && name[0] <= '9');
  bool cast = at > 0 && text[at - 1] == ')';
  return numeric || cast ? std::string_view{} : name;
}

inline constexpr std::size_t kMaxEnumerators = 16;

template <class E, std::size_t... I>
consteval auto enumerators(std::index_sequence<I...>) {
  return std::array<std::string_view, sizeof...(I)>{enumerator<E, static_cast<E>(I)>()...};
}

}  // namespace detail

// In declaration order, as written in C++.
template <class T>
inline constexpr auto kFieldNames =
    detail::field_names<T>(std::make_index_sequence<boost::pfr::tuple_size_v<T>>{});

// Indexed by value, 0 to 15; "" where there is no enumerator.
template <class E>
inline constexpr auto kEnumerators =
    detail::enumerators<E>(std::make_index_sequence<detail::kMaxEnumerators>{});

// `probe_timeout_ms` is `probeTimeoutMs` in JSON.
inline std::string json_key(std::string_view field) {
  std::string key;
  bool raise = false;
  for (char c : field) {
    if (c == '_') {
      raise = true;
      continue;
    }
    key += raise && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    raise = false;
  }
  return key;
}

// `workspace_write` is `workspace-write` in JSON, on the command line and in messages; the
// underscore at the end of `namespace_`, which keeps it from being a keyword, is dropped.
template <class E>
std::string enum_name(E value) {
  auto index = static_cast<std::size_t>(value);
  std::string name;
  if (index < kEnumerators<E>.size()) name = kEnumerators<E>[index];
  if (name.ends_with('_')) name.pop_back();
  for (char& c : name)
    if (c == '_') c = '-';
  return name;
}

}  // namespace stockade
