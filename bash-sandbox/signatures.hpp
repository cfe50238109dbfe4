// SPDX-License-Identifier: MIT
// Looks for a backend's signatures in a stream while it passes, so that evidence counts however
// much output follows it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/confined.hpp"

namespace stockade {

// What counts as a denial: on stderr, a line that holds a signature anywhere. On standard output,
// which holds data, only one in the form of a diagnostic: `…: SIGNATURE`, `…[Errno 30] SIGNATURE:
// …`.
enum class SignatureForm { anywhere, diagnostic };

class SignatureScanner {
 public:
  SignatureScanner(const std::vector<std::string>& denial_signatures,
                   const std::vector<RunnerFailureRule>& rules,
                   SignatureForm form = SignatureForm::anywhere);

  void feed(std::string_view bytes);
  void finish();  // the last line may have no newline

  // The first line that holds a denial signature.
  const std::optional<std::string>& denial_line() const noexcept { return denial_line_; }
  // The line by which a rule proves a runner failure, given the exit code of the process.
  std::optional<std::string> fatal_line(std::optional<int> exit_code) const;

 private:
  struct Rule {
    std::optional<std::vector<int>> allowed_exit_codes;
    std::vector<std::string> fatal;
    std::vector<std::string> informational;
    std::optional<std::string> line;  // the first that matched
  };
  void end_of_line();
  void search();
  std::size_t find_denial(const std::string& folded) const;

  SignatureForm form_;
  std::vector<std::string> denials_;  // lower case, as all needles
  std::vector<Rule> rules_;
  std::optional<std::string> denial_line_;
  // The line so far. One longer than kMaxLine is searched piece by piece with an overlap as long as
  // the longest needle.
  std::string line_;
  bool partial_ = false;  // `line_` is not the whole line
  std::size_t longest_ = 1;
};

}  // namespace stockade
