// SPDX-License-Identifier: MIT
#include "bash-sandbox/signatures.hpp"

#include <algorithm>

namespace stockade {

namespace {

constexpr std::size_t kMaxLine = 65536;
constexpr std::size_t kMaxEvidence = 2000;  // of a line that is kept to be shown

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::vector<std::string> needles(const std::vector<std::string>& signatures) {
  std::vector<std::string> out;
  for (const auto& signature : signatures)
    if (signature.find_first_not_of(" \t\r\n\v\f") != std::string::npos)  // "" would match anything
      out.push_back(lower(signature));
  return out;
}

std::size_t find_any(const std::string& line, const std::vector<std::string>& wanted) {
  for (const auto& needle : wanted)
    if (std::size_t at = line.find(needle); at != std::string::npos) return at;
  return std::string::npos;
}

// The line, or of a long one the part that begins shortly before the match.
std::string evidence(std::string_view line, std::size_t match) {
  if (line.size() > kMaxEvidence) line.remove_prefix(match > 200 ? match - 200 : 0);
  return std::string(line.substr(0, kMaxEvidence));
}

}  // namespace

SignatureScanner::SignatureScanner(const std::vector<std::string>& denial_signatures,
                                   const std::vector<RunnerFailureRule>& rules, SignatureForm form)
    : form_(form), denials_(needles(denial_signatures)) {
  for (const auto& rule : rules) {
    Rule prepared{rule.allowed_exit_codes, needles(rule.fatal_signatures), {}, std::nullopt};
    for (const auto& line : rule.informational_lines) prepared.informational.push_back(lower(line));
    rules_.push_back(std::move(prepared));
  }
  for (const auto& needle : denials_) longest_ = std::max(longest_, needle.size());
  for (const auto& rule : rules_)
    for (const auto& needle : rule.fatal) longest_ = std::max(longest_, needle.size());
}

void SignatureScanner::feed(std::string_view bytes) {
  if (denials_.empty() && rules_.empty()) return;
  while (!bytes.empty()) {
    std::size_t end = bytes.find('\n');
    std::size_t piece =
        std::min(end == std::string_view::npos ? bytes.size() : end, kMaxLine - line_.size());
    line_.append(bytes.substr(0, piece));
    bytes.remove_prefix(piece);
    if (!bytes.empty() && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      end_of_line();
    } else if (line_.size() == kMaxLine) {
      partial_ = true;
      search();
      line_.erase(0, line_.size() - (longest_ - 1));
    }
  }
}

void SignatureScanner::finish() {
  if (!line_.empty()) end_of_line();
}

void SignatureScanner::end_of_line() {
  if (!line_.empty() && line_.back() == '\r') line_.pop_back();
  search();
  line_.clear();
  partial_ = false;
}

std::size_t SignatureScanner::find_denial(const std::string& folded) const {
  if (form_ == SignatureForm::anywhere) return find_any(folded, denials_);
  const std::string_view line = folded;
  for (const auto& needle : denials_)
    for (std::size_t at = line.find(needle); at != std::string_view::npos;
         at = line.find(needle, at + 1)) {
      const std::string_view before = line.substr(0, at);
      const std::string_view after = line.substr(at + needle.size());
      if ((before.ends_with(": ") || before.ends_with("] ")) &&
          (after.empty() || after.front() == ':' || after.front() == ',' || after.front() == '.'))
        return at;
    }
  return std::string::npos;
}

void SignatureScanner::search() {
  const std::string folded = lower(line_);
  if (!denial_line_)
    if (std::size_t at = find_denial(folded); at != std::string::npos)
      denial_line_ = evidence(line_, at);
  for (auto& rule : rules_) {
    if (rule.line) continue;
    bool benign = !partial_ && std::find(rule.informational.begin(), rule.informational.end(),
                                         folded) != rule.informational.end();
    if (benign) continue;
    if (std::size_t at = find_any(folded, rule.fatal); at != std::string::npos)
      rule.line = evidence(line_, at);
  }
}

std::optional<std::string> SignatureScanner::fatal_line(std::optional<int> exit_code) const {
  if (!exit_code || *exit_code == 0) return std::nullopt;
  for (const auto& rule : rules_) {
    bool allowed = !rule.allowed_exit_codes ||
                   std::find(rule.allowed_exit_codes->begin(), rule.allowed_exit_codes->end(),
                             *exit_code) != rule.allowed_exit_codes->end();
    if (rule.line && allowed) return rule.line;
  }
  return std::nullopt;
}

}  // namespace stockade
