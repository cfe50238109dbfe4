// SPDX-License-Identifier: MIT
#include "sandbox/roots.hpp"

#include <unistd.h>

#include <climits>
#include <filesystem>

#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using stockade::test::Scratch;
using stockade::test::thrown_by;
using stockade::test::write_file;

namespace fs = std::filesystem;

TEST_CASE("roots: a link is resolved and a missing path stays as it is spelled") {
  Scratch scratch;
  fs::create_directory(scratch / "real");
  fs::create_symlink(scratch / "real", scratch / "link");
  CHECK(canonicalize(scratch / "link") == scratch / "real");
  CHECK(canonicalize(scratch / "link/missing") == scratch / "link/missing");
  CHECK(canonicalize("../no/./such//path") == "../no/./such//path");
}

TEST_CASE("roots: a resolved root is absolute and normal") {
  char cwd[PATH_MAX];
  REQUIRE(getcwd(cwd, sizeof cwd));
  CHECK(resolve_root("") == cwd);
  CHECK(resolve_root(".") == cwd);
  CHECK(resolve_root("no-such-dir/x/..") == std::string(cwd) + "/no-such-dir");
  CHECK(resolve_root("/no-such/a//b/./../c/") == "/no-such/a/c");
  CHECK(resolve_root("/") == "/");
  CHECK(resolve_root("/no-such/..") == "/");
}

TEST_CASE("roots: a link before two dots is followed first") {
  Scratch scratch;
  fs::create_directories(scratch / "deep/inner");
  fs::create_directory(scratch / "deep/next");
  fs::create_symlink(scratch / "deep/inner", scratch / "link");
  CHECK(resolve_root(scratch / "link/../next") == scratch / "deep/next");
}

TEST_CASE("roots: only what is below an ancestor is within it") {
  CHECK(is_within("/a/b", "/a"));
  CHECK(is_within("/a", "/a"));
  CHECK(is_within("/a", "/"));
  CHECK(is_within("/", "/"));
  CHECK_FALSE(is_within("/ab", "/a"));
  CHECK_FALSE(is_within("/", "/a"));
  CHECK_FALSE(is_within("/b/a", "/a"));
}

TEST_CASE("roots: a directory of one's own is a workspace whatever its name") {
  Scratch scratch;
  for (std::string name :
       {"plain", "sp ace", "nl\nx", "quo\"te'", "-dash", "tab\t", "a:b", "\xff", "$(touch p)"}) {
    std::string root = scratch / name;
    fs::create_directory(root);
    CHECK(thrown_by([&] { check_workspace_root(root, {}); }).code.empty());
  }
}

TEST_CASE("roots: a root that would undo the sandbox is refused by name") {
  for (std::string root : {"/", "/proc", "/proc/self", "/sys", "/sys/kernel", "/dev", "/dev/shm",
                           "/run", "/run/lock"}) {
    auto thrown = thrown_by([&] { check_workspace_root(root, {}); });
    CHECK(thrown.code == "WORKSPACE_REFUSED");
    CHECK(thrown.operand == root);
    CHECK_THAT(thrown.text, ContainsSubstring("\"" + root + "\""));
    CHECK_THAT(thrown.text, ContainsSubstring("nothing was run"));
  }
}

TEST_CASE("roots: a root that cannot be mounted is refused with the reason") {
  Scratch scratch;
  write_file(scratch / "file", "");
  fs::create_directory(scratch / "real");
  fs::create_symlink(scratch / "real", scratch / "link");
  fs::create_directory(scratch / "real/sub");
  struct Row {
    std::string root;
    std::string reason;
  };
  for (const auto& row : {
           Row{"", "not absolute"},
           Row{"relative/path", "not absolute"},
           Row{scratch / "missing", "does not exist"},
           Row{scratch / "file", "not a directory"},
           Row{scratch / "link", "symbolic link to \"" + (scratch / "real") + "\""},
           Row{scratch / "link/sub", "symbolic link to \"" + (scratch / "real/sub") + "\""},
           Row{std::string("/tmp\0/x", 7), "NUL byte"},
           Row{"/" + std::string(PATH_MAX, 'x'), "longer than 4095 bytes"},
       }) {
    auto thrown = thrown_by([&] { check_workspace_root(row.root, {}); });
    CHECK(thrown.code == "WORKSPACE_REFUSED");
    CHECK_THAT(thrown.text, ContainsSubstring(row.reason));
  }
  CHECK(thrown_by([&] { check_workspace_root(scratch / "real", {}); }).code.empty());
}

TEST_CASE("roots: a root above a protected path is refused") {
  Scratch scratch;
  fs::create_directories(scratch / "lib/tool");
  fs::create_directory(scratch / "library");
  fs::create_symlink(scratch / "lib/tool", scratch / "library/tool");
  std::string launcher = scratch / "lib/tool/launcher";
  write_file(launcher, "", 0755);
  auto refused = [&](const std::string& root, const std::string& path) {
    return thrown_by([&] { check_workspace_root(root, {path}); });
  };
  auto above = refused(scratch / "lib", launcher);
  CHECK(above.code == "WORKSPACE_REFUSED");
  CHECK_THAT(above.text, ContainsSubstring(launcher));
  CHECK(refused(scratch / "lib/tool", launcher).code == "WORKSPACE_REFUSED");
  CHECK(refused(scratch.path(), launcher).code == "WORKSPACE_REFUSED");
  // Also where the path is known by another name.
  CHECK(refused(scratch / "lib", scratch / "library/tool/launcher").code == "WORKSPACE_REFUSED");
  CHECK(refused(scratch / "library", launcher).code.empty());
}
