// SPDX-License-Identifier: MIT
// The one exception type of the project, for what cannot go on. Outcomes of a call are values and
// never thrown.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "framework/api.hpp"

namespace stockade {

// `code` is stable and upper case (`SANDBOX_UNAVAILABLE`, `CONFIG_INVALID`, …); callers branch on
// it, never on the text. `operand` is what the failure is about: a path, a key, a service.
// Exported with default visibility, so that it can be caught by type across shared objects.
class STOCKADE_API Error : public std::runtime_error {
 public:
  Error(std::string code, const std::string& message, std::string operand = {});
  ~Error() override;

  const std::string& code() const noexcept { return code_; }
  const std::string& operand() const noexcept { return operand_; }

 private:
  std::string code_;
  std::string operand_;
};

// The text of any exception; for one that is no std::exception, that it was none.
STOCKADE_API std::string describe(const std::exception_ptr& error);
// Its code, or `fallback` where it is no Error.
STOCKADE_API std::string code_of(const std::exception_ptr& error, std::string_view fallback);

// `EACCES (Permission denied)`.
STOCKADE_API std::string describe_errno(int error);

// The candidate nearest to `word` by edit distance, or "" when none is near enough to be a typo.
STOCKADE_API std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
// ` (did you mean "x"?)`, or a list of all candidates when none is near, or "" without candidates.
STOCKADE_API std::string suggestion(std::string_view word,
                                    const std::vector<std::string>& candidates);

}  // namespace stockade
