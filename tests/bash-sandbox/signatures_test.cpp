// SPDX-License-Identifier: MIT
#include "bash-sandbox/signatures.hpp"

#include "tests/support/catch.hpp"

using namespace stockade;

namespace {

using Words = std::vector<std::string>;

std::optional<std::string> denial(const Words& dialect, const std::string& text) {
  SignatureScanner scanner(dialect, {});
  scanner.feed(text);
  scanner.finish();
  return scanner.denial_line();
}

std::optional<std::string> fatal(const RunnerFailureRule& rule, const std::string& text,
                                 std::optional<int> code) {
  SignatureScanner scanner({}, {rule});
  scanner.feed(text);
  scanner.finish();
  return scanner.fatal_line(code);
}

const std::string kNotice = "landlock-run: partial enforcement (older Landlock ABI)";
const RunnerFailureRule kLandlock{std::vector<int>{125}, {"landlock-run: "}, {kNotice}};

}  // namespace

TEST_CASE("signatures: each dialect sees its own denials alone") {
  struct Row {
    Words dialect;
    std::string text;
    bool seen;
  };
  Words files{"read-only file system", "permission denied"};
  for (const auto& row : {
           Row{files, "sh: cannot create f: Read-only file system", true},
           Row{files, "x: Permission denied", true},
           Row{files, "EROFS: read-only file system, open '/etc/zz'", true},
           Row{files, "Operation not permitted", false},
           Row{files, "No such file or directory", false},
           Row{{"operation not permitted"}, "x: Operation not permitted", true},
           Row{{"read-only file system"}, "x: Permission denied", false},
           Row{{}, "x: Permission denied", false},
       }) {
    CAPTURE(row.text);
    CHECK(denial(row.dialect, row.text + "\n").has_value() == row.seen);
  }
}

TEST_CASE("signatures: the case of neither side matters") {
  CHECK(denial({"Read-Only FILE system"}, "x: rEAD-oNLY file SYSTEM\n"));
}

TEST_CASE("signatures: the first line with a denial is the evidence") {
  CHECK(denial({"denied"}, "one\ntwo: Denied\nthree: denied\n") == "two: Denied");
  CHECK(denial({"denied"}, "two: Denied\r\nmore\n") == "two: Denied");
}

TEST_CASE("signatures: the last line needs no newline") {
  SignatureScanner scanner({"denied"}, {});
  scanner.feed("one\ntwo: denied");
  CHECK_FALSE(scanner.denial_line());
  scanner.finish();
  CHECK(scanner.denial_line() == "two: denied");
}

TEST_CASE("signatures: a text that is cut across reads at any byte is seen") {
  std::string text = "a\nx: Permission denied\nb\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    SignatureScanner scanner({"permission denied"}, {});
    scanner.feed(std::string_view(text).substr(0, cut));
    scanner.feed(std::string_view(text).substr(cut));
    scanner.finish();
    CHECK(scanner.denial_line() == "x: Permission denied");
  }
}

TEST_CASE("signatures: a text that spans two lines is none") {
  CHECK_FALSE(denial({"permission denied"}, "permission \ndenied\n"));
}

TEST_CASE("signatures: a denial anywhere in a line of any length is seen") {
  constexpr std::size_t kPiece = 65536;
  for (std::size_t before : {std::size_t{0}, std::size_t{1000}, kPiece - 17, kPiece - 9, kPiece - 1,
                             kPiece, kPiece + 1, 2 * kPiece - 25, std::size_t{1000000}}) {
    CAPTURE(before);
    std::string text = std::string(before, 'x') + "Permission denied" + std::string(100000, 'y');
    CHECK(denial({"permission denied"}, text));
    CHECK(denial({"permission denied"}, text + "\n"));
  }
  CHECK_FALSE(denial({"permission denied"}, std::string(1000000, 'x') + "\n"));
}

TEST_CASE("signatures: a line that fills the buffer to the byte keeps its newline") {
  std::string full(65536, 'x');
  CHECK(denial({"denied"}, full + "\ndenied\n") == "denied");
}

TEST_CASE("signatures: evidence is bounded") {
  auto line = denial({"denied"}, "denied" + std::string(50000, 'x') + "\n");
  REQUIRE(line);
  CHECK(line->size() == 2000);
}

TEST_CASE("signatures: evidence counts however much follows it") {
  SignatureScanner scanner({"denied"}, {kLandlock});
  scanner.feed("landlock-run: no\nx: denied\n");
  for (int i = 0; i < 1000; ++i) scanner.feed("line after line after line after line\n");
  scanner.finish();
  CHECK(scanner.denial_line() == "x: denied");
  CHECK(scanner.fatal_line(125) == "landlock-run: no");
}

TEST_CASE("signatures: blank ones match nothing and those beside them work") {
  CHECK_FALSE(denial({"", " ", "\t"}, "any text\n\n \t \n"));
  RunnerFailureRule rule{std::nullopt, {"", " ", "\t", "fake-runner: "}, {}};
  CHECK_FALSE(fatal(rule, "any text \t here\n", 125));
  CHECK(fatal(rule, "fake-runner: no\n", 125) == "fake-runner: no");
}

TEST_CASE("signatures: an exit status alone proves no runner failure") {
  CHECK_FALSE(fatal(kLandlock, "", 125));
  CHECK_FALSE(fatal({std::nullopt, {}, {}}, "text\n", 125));
}

TEST_CASE("signatures: a rule holds for the exit codes that it allows") {
  std::string text = "landlock-run: no\n";
  CHECK(fatal(kLandlock, text, 125) == "landlock-run: no");
  for (int code : {0, 1, 2, 124, 126, 127}) CHECK_FALSE(fatal(kLandlock, text, code));
  CHECK_FALSE(fatal(kLandlock, text, std::nullopt));

  RunnerFailureRule any{std::nullopt, {"landlock-run: "}, {}};
  CHECK(fatal(any, text, 1));
  CHECK(fatal(any, text, 255));
  CHECK_FALSE(fatal(any, text, 0));
  CHECK_FALSE(fatal(any, text, std::nullopt));
}

TEST_CASE("signatures: a notice is no failure and the fatal line after it is") {
  CHECK_FALSE(fatal(kLandlock, kNotice + "\n", 125));
  CHECK_FALSE(fatal(kLandlock, kNotice + "\r\n", 125));
  CHECK_FALSE(fatal(kLandlock, kNotice, 125));
  CHECK(fatal(kLandlock, kNotice + "\nlandlock-run: no\n", 125) == "landlock-run: no");
}

TEST_CASE("signatures: a line is a notice only when it is one entirely") {
  CHECK(fatal(kLandlock, kNotice + " x\n", 125));
  CHECK(fatal(kLandlock, "x " + kNotice + "\n", 125));
}

TEST_CASE("signatures: the first rule that holds gives the line") {
  SignatureScanner scanner(
      {}, {{std::vector<int>{1}, {"first: "}, {}}, {std::nullopt, {"second: "}, {}}});
  scanner.feed("second: b\nfirst: a\n");
  scanner.finish();
  CHECK(scanner.fatal_line(1) == "first: a");
  CHECK(scanner.fatal_line(2) == "second: b");
}

TEST_CASE("signatures: the evidence of a long line holds the signature") {
  SignatureScanner scanner({"read-only file system"}, {});
  scanner.feed(std::string(30000, 'x') + ": Read-only file system\n");
  REQUIRE(scanner.denial_line());
  CHECK_THAT(*scanner.denial_line(), ContainsSubstring("Read-only file system"));
  CHECK(scanner.denial_line()->size() <= 2000);
}
