// SPDX-License-Identifier: MIT
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "plugins/sessions/session_file.hpp"
#include "sandbox/policy.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using stockade::test::read_file;
using stockade::test::Scratch;
using stockade::test::thrown_by;
using stockade::test::write_file;

namespace {

struct Rig {
  std::unique_ptr<FileSession> open(const std::string& id = "s",
                                    std::optional<std::string> cwd = "/usr") {
    return std::make_unique<FileSession>(directory, id, std::move(cwd),
                                         std::vector<std::string>{"/usr"});
  }
  std::string path(const std::string& id = "s") const { return directory + "/" + id + ".jsonl"; }
  Scratch scratch{"/var/tmp"};
  std::string directory = scratch / "state/stockade/sessions";
};

}  // namespace

TEST_CASE("session file: what is appended is there when it is opened again") {
  Rig rig;
  {
    auto session = rig.open();
    CHECK_FALSE(stockade::test::exists(rig.path()));  // nothing happened yet
    session->append("call/started", {{"id", "1"}});
    session->append("sandbox/mode", {{"mode", "workspace-write"}});
    session->append("call/ended", {{"id", "1"}});
    CHECK(session->opening().created);
  }
  auto again = rig.open();
  CHECK(again->session().cwd == "/usr");
  CHECK(session_mode(again->session()) == SandboxMode::workspace_write);
  again.reset();
  auto record = load_session(rig.directory, "s");
  REQUIRE(record.events.size() == 4);
  CHECK(record.events[0]["type"] == "session/opened");
  CHECK(record.events[3]["seq"] == 4);
  CHECK(record.events[3]["data"]["id"] == "1");
}

TEST_CASE("session file: it is nobody else's") {
  Rig rig;
  rig.open()->append("x", nlohmann::ordered_json::object());
  struct stat info {};
  REQUIRE(stat(rig.path().c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  REQUIRE(stat(rig.directory.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
  chmod(rig.directory.c_str(), 0777);
  rig.open();
  REQUIRE(stat(rig.directory.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
}

TEST_CASE("session file: a crash at any byte loses at most the line that was being written") {
  Rig rig;
  {
    auto session = rig.open();
    session->append("sandbox/mode", {{"mode", "workspace-write"}});
    session->append("call/started", {{"command", "echo \u00e9"}});
    session->append("sandbox/mode", {{"mode", "read-only"}});
  }
  const std::string whole = read_file(rig.path());
  std::size_t modes = 0;
  for (std::size_t kept = 0; kept < whole.size(); ++kept) {
    write_file(rig.path(), whole.substr(0, kept), 0600);
    const std::size_t last_end = kept == 0 ? 0 : whole.rfind('\n', kept - 1) + 1;
    const std::size_t torn = kept == 0 || whole.find('\n') >= kept ? kept : kept - last_end;
    std::optional<SandboxMode> mode;
    {
      auto session = rig.open();
      CHECK(session->opening().torn_bytes == torn);
      mode = session_mode(session->session());
      session->append("call/ended", {{"id", "1"}});
    }
    if (mode == SandboxMode::workspace_write) ++modes;
    auto record = load_session(rig.directory, "s");
    CHECK(record.torn_bytes == 0);
    CHECK(record.events.back()["type"] == "call/ended");
    if (torn > 0 && whole.find('\n') < kept)
      CHECK(record.events[record.events.size() - 2]["data"]["droppedBytes"] == torn);
    CHECK(session_mode(rig.open()->session()) == mode);
  }
  CHECK(modes > 0);
}

TEST_CASE("session file: a damaged log is refused and not guessed at") {
  Rig rig;
  { rig.open()->append("sandbox/mode", {{"mode", "read-only"}}); }
  const std::string first = read_file(rig.path()).substr(0, read_file(rig.path()).find('\n') + 1);
  for (const std::string& line : {
           std::string("nonsense"),
           std::string("[]"),
           std::string("{\"seq\":2,\"time\":\"\",\"type\":\"x\"}"),
           std::string("{\"seq\":3,\"time\":\"\",\"type\":\"x\",\"data\":{}}"),
           std::string("{\"seq\":2,\"time\":\"\",\"type\":\"session/opened\",\"data\":{}}"),
           std::string("{\"seq\":2,\"time\":\"\",\"type\":\"sandbox/mode\",\"data\":{\"mode\":"
                       "\"host-root\"}}"),
           std::string("{\"seq\":2,\"time\":\"\",\"type\":\"sandbox/mode\",\"data\":{}}"),
           std::string(20, '\0'),
       }) {
    CAPTURE(line);
    write_file(rig.path(), first + line + "\n", 0600);
    auto refused = thrown_by([&] { rig.open(); });
    CHECK(refused.code == "SESSION_INVALID");
    CHECK_THAT(refused.text, ContainsSubstring(rig.path()) && ContainsSubstring("line 2"));
    CHECK(read_file(rig.path()) == first + line + "\n");
  }
  // Another session's log under this name.
  { rig.open("other")->append("x", nlohmann::ordered_json::object()); }
  write_file(rig.path(), read_file(rig.path("other")), 0600);
  CHECK(thrown_by([&] { rig.open(); }).code == "SESSION_INVALID");
}

TEST_CASE("session file: an unknown mode is not appended") {
  Rig rig;
  auto session = rig.open();
  CHECK(thrown_by([&] {
          session->append("sandbox/mode", {{"mode", "host-root"}});
        }).code == "SESSION_INVALID");
  CHECK_FALSE(session_mode(session->session()));
}

TEST_CASE("session file: its directory never changes") {
  Rig rig;
  { rig.open()->append("x", nlohmann::ordered_json::object()); }
  auto refused = thrown_by([&] { rig.open("s", "/etc"); });
  CHECK(refused.code == "SESSION_INVALID");
  CHECK_THAT(refused.text, ContainsSubstring("/usr") && ContainsSubstring("/etc"));
  CHECK(rig.open("s", std::nullopt)->session().cwd == "/usr");
}

TEST_CASE("session file: one host at a time has it") {
  Rig rig;
  auto session = rig.open();
  session->append("x", nlohmann::ordered_json::object());
  CHECK(thrown_by([&] { rig.open(); }).code == "SESSION_BUSY");
  session.reset();
  CHECK_NOTHROW(rig.open());
}

TEST_CASE("session file: a log that commands could write is refused and nothing is made there") {
  Rig rig;
  for (const std::string& root : {rig.scratch.path(), rig.directory, std::string("/")}) {
    auto refused = thrown_by([&] {
      FileSession(rig.directory, "s", std::nullopt, {"/usr", root});
    });
    CHECK(refused.code == "SESSION_UNSAFE");
  }
  CHECK_FALSE(stockade::test::exists(rig.scratch / "state"));
  CHECK(thrown_by([&] { FileSession("/tmp/x", "s", std::nullopt, {"/usr"}); }).code ==
        "SESSION_UNSAFE");
  // Through a link.
  mkdir((rig.scratch / "workspace").c_str(), 0700);
  REQUIRE(symlink((rig.scratch / "workspace").c_str(), (rig.scratch / "link").c_str()) == 0);
  CHECK(thrown_by([&] {
          FileSession(rig.scratch / "link/s", "s", std::nullopt, {rig.scratch / "workspace"});
        }).code == "SESSION_UNSAFE");
}

TEST_CASE("session file: an id is part of a name and of no path") {
  for (const char* good : {"a", "A-1_b.c", "mcp-20261130-210000-1"}) CHECK(is_session_id(good));
  for (const std::string& bad :
       {std::string(), std::string("."), std::string("../x"), std::string("a/b"),
        std::string("a b"), std::string(65, 'x'), std::string("a\0b", 3), std::string("\u00e9")}) {
    CHECK_FALSE(is_session_id(bad));
    Rig rig;
    CHECK(thrown_by([&] { rig.open(bad); }).code == "SESSION_INVALID");
  }
}

TEST_CASE("session file: what is not there is named with what is") {
  Rig rig;
  { rig.open("build")->append("x", nlohmann::ordered_json::object()); }
  CHECK_THAT(thrown_by([&] { load_session(rig.directory, "biuld"); }).text,
             ContainsSubstring("did you mean \"build\""));
  CHECK(session_ids(rig.directory) == std::vector<std::string>{"build"});
  CHECK(session_ids(rig.directory + "/none").empty());
}
