// SPDX-License-Identifier: MIT
// From arbitrary output, reports and endings to a verdict: whatever a command prints, what the
// status channel proves stands, and nothing is claimed without evidence.
#include "bash-sandbox/classify.hpp"

#include "bash-sandbox/signatures.hpp"
#include "fuzz/fuzz.hpp"

using namespace stockade;

namespace {

const std::vector<std::string> kDenials{"read-only file system", "permission denied", "EROFS", " "};
const std::vector<RunnerFailureRule> kRules{
    {std::vector<int>{125}, {"runner: ", ""}, {"runner: notice"}},
    {std::nullopt, {"fatal"}, {}},
};

struct Found {
  std::optional<std::string> denial;
  std::optional<std::string> fatal;
  bool operator==(const Found&) const = default;
};

Found scan(std::string_view bytes, std::size_t step, SignatureForm form, int exit_code) {
  SignatureScanner scanner(kDenials, kRules, form);
  for (std::size_t at = 0; at < bytes.size(); at += step) scanner.feed(bytes.substr(at, step));
  scanner.finish();
  return {scanner.denial_line(), scanner.fatal_line(exit_code)};
}

RunnerStatus read_in_pieces(std::string_view report, std::size_t step) {
  StatusReader reader;
  for (std::size_t at = 0; at < report.size(); at += step) reader.feed(report.substr(at, step));
  return reader.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t flags = input.byte();
  const std::uint8_t more = input.byte();
  const int number = input.byte();
  const std::string_view report = input.take(input.byte());
  const std::string_view output = input.rest();

  const SignatureForm form = flags & 1 ? SignatureForm::anywhere : SignatureForm::diagnostic;
  const Found found = scan(output, output.size() + 1, form, number);
  for (std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{64}})
    fuzz::require(scan(output, step, form, number) == found, "pieces are read as the whole is");
  for (std::size_t step : {std::size_t{1}, std::size_t{7}})
    fuzz::require(read_in_pieces(report, step) == read_status(report),
                  "a report in pieces is read as the whole is");
  if (number == 0) fuzz::require(!found.fatal, "success is no failure of a runner");
  if (form == SignatureForm::diagnostic && found.denial)
    fuzz::require(
        scan(output, output.size() + 1, SignatureForm::anywhere, number).denial.has_value(),
        "a diagnostic is a denial anywhere");

  Ending ending;
  if (flags & 2)
    ending.exit_code = number;
  else if (flags & 4)
    ending.signal = 1 + number % 64;
  ending.timed_out = (flags & 8) != 0;
  ending.aborted = (flags & 16) != 0;
  ending.killed = (flags & 32) != 0;
  Evidence evidence;
  evidence.confined = (flags & 64) != 0;
  if (flags & 128) evidence.status = read_status(report);
  if (more & 1) evidence.supervised_start = (more & 2) != 0;
  evidence.fatal_line = found.fatal;
  evidence.denial_line = found.denial;
  const Verdict verdict = classify(ending, evidence);

  fuzz::require(verdict.denied == (verdict.outcome == BashOutcome::denied), "denied is denied");
  fuzz::require(verdict.runner_failed == (verdict.outcome == BashOutcome::runner_failed),
                "a runner that failed is one");
  if (verdict.denied)
    fuzz::require(evidence.confined && ending.exit_code.value_or(0) != 0 && verdict.evidence,
                  "a denial has a sandbox, an exit code and a line");
  if (!evidence.confined)
    fuzz::require(!verdict.denied && !verdict.runner_failed,
                  "without a sandbox nothing is claimed of one");
  if (evidence.confined && !evidence.supervised_start && evidence.status) {
    if (evidence.status->command_ran())
      fuzz::require(!verdict.runner_failed && verdict.ran == true,
                    "what is proven to have run ran");
    if (!evidence.status->failure.empty())
      fuzz::require(verdict.ran == false && verdict.runner_failed,
                    "what is reported failed failed");
    if (!evidence.status->ready) fuzz::require(verdict.ran == false, "nothing ran before ready");
  }
  if (verdict.outcome == BashOutcome::ok)
    fuzz::require(ending.exit_code == 0 && !ending.timed_out && !ending.aborted,
                  "success is exit 0 and nothing else");
  return 0;
}
