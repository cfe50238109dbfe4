// SPDX-License-Identifier: MIT
#include "framework/error.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <numeric>

namespace stockade {

Error::Error(std::string code, const std::string& message, std::string operand)
    : std::runtime_error(message), code_(std::move(code)), operand_(std::move(operand)) {}

Error::~Error() = default;

std::string describe(const std::exception_ptr& error) {
  if (!error) return "no error";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

std::string code_of(const std::exception_ptr& error, std::string_view fallback) {
  if (!error) return std::string(fallback);
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code();
  } catch (...) {
    return std::string(fallback);
  }
}

std::string describe_errno(int error) {
  const char* name = strerrorname_np(error);
  const char* text = strerrordesc_np(error);
  return std::string(name ? name : "errno " + std::to_string(error)) + " (" +
         (text ? text : "unknown error") + ")";
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      std::size_t replaced = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = word.size() / 2 + 1;  // further away is another word, not a typo
  for (const auto& candidate : candidates) {
    std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  if (candidates.empty()) return "";
  if (std::string best = nearest(word, candidates); !best.empty())
    return " (did you mean \"" + best + "\"?)";
  std::string list;
  for (const auto& candidate : candidates) list += (list.empty() ? "" : ", ") + candidate;
  return " (known: " + list + ")";
}

}  // namespace stockade
