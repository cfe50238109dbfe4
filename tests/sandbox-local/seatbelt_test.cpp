// SPDX-License-Identifier: MIT
#include "sandbox-local/seatbelt.hpp"

#include "framework/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"

using namespace stockade;
using stockade::test::thrown_by;

namespace {

using Words = std::vector<std::string>;

constexpr const char* kReadOnlyProfile =
    R"((version 1) (allow default) (deny file-write*) (allow file-write* (literal "/dev/null")))";

// The forms of a profile outside its strings; "unbalanced" when it is not well-formed.
std::string outside_strings(const std::string& profile) {
  std::string out;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < profile.size(); ++i) {
    char c = profile[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '(') ++depth;
    if (c == ')' && --depth < 0) return "unbalanced";
    out += c;
  }
  return depth != 0 || in_string ? "unbalanced" : out;
}

BackendHost mac() {
  BackendHost host;
  host.sandbox_exec = "/usr/bin/sandbox-exec";
  host.temporary_areas = {"/private/tmp", "/private/var/folders/x/T"};
  return host;
}

}  // namespace

TEST_CASE("seatbelt: the profiles are a contract word for word") {
  CHECK(seatbelt_profile({}) == kReadOnlyProfile);
  CHECK(seatbelt_profile({"/r1", "/r2"}) ==
        std::string(kReadOnlyProfile) + R"( (allow file-write* (subpath "/r1") (subpath "/r2")))");
}

TEST_CASE("seatbelt: the argv is sandbox-exec with one profile and then the command") {
  auto read = confine_seatbelt(
      mac(), {{"bash", "-c", "x"}, {ConfinedSandboxMode::read_only, "/ws"}, "/", "", ""});
  CHECK(read.argv ==
        Words{"/usr/bin/sandbox-exec", "-p", kReadOnlyProfile, "--", "bash", "-c", "x"});
  CHECK(read.enforcement == SandboxEnforcement::full);
  CHECK(read.denial_signatures == Words{"operation not permitted"});
  REQUIRE(read.runner_failure_rules.size() == 1);
  CHECK(read.runner_failure_rules[0].fatal_signatures == Words{"sandbox-exec: "});
  CHECK_FALSE(read.runner_failure_rules[0].allowed_exit_codes);
  CHECK_FALSE(read.status_channel);

  auto write = confine_seatbelt(
      mac(), {{"true"}, {ConfinedSandboxMode::workspace_write, "/Users/me/ws"}, "/", "", ""});
  CHECK(write.argv[2] ==
        std::string(kReadOnlyProfile) +
            R"( (allow file-write* (subpath "/Users/me/ws") (subpath "/private/tmp"))" +
            R"( (subpath "/private/var/folders/x/T")))");
}

TEST_CASE("seatbelt: a root cannot leave its string") {
  const std::string plain = outside_strings(seatbelt_profile({"/w"}));
  for (const char* root :
       {R"(/w/a") (allow default) (x ")", R"(/w/back\)", R"(/w/\")", R"(/w/") (allow file-write*)",
        "/w/(((", "/w/)))", "/w/; comment", "/w/#t", "/w/sp ace", "/w/ünï"}) {
    CAPTURE(root);
    CHECK(outside_strings(seatbelt_profile({root})) == plain);
  }
}

TEST_CASE("seatbelt: a root with a control character is refused") {
  for (const std::string& root : {std::string("/w/nl\nx"), std::string("/w/\r"),
                                  std::string("/w/nul\0x", 8), std::string("/w/\x7f")}) {
    auto thrown = thrown_by([&] { seatbelt_profile({root}); });
    CHECK(thrown.code == "WORKSPACE_REFUSED");
    CHECK(thrown.operand == root);
  }
}
