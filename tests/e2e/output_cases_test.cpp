// SPDX-License-Identifier: MIT
// What a command writes, in cases that this kind of software gets wrong.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/e2e/world.hpp"

using namespace stockade::test;

namespace {

const std::vector<std::string> kModes{"read-only", "danger-full-access"};

// The spilled bytes of a stream; the file goes with its directory.
std::string take_spill(const nlohmann::json& stream) {
  const std::string path = stream["spillPath"];
  std::string bytes = read_file(path);
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  return bytes;
}

std::string repeat(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

const std::string kReplacement = "\xEF\xBF\xBD";

}  // namespace

BACKEND_TEST("a character that comes in pieces between two streams is whole") {
  for (const auto& mode : kModes) {
    auto result = world.json(mode,
                             "printf '\\xf0\\x9f'; sleep 0.1; echo E >&2; sleep 0.1; printf "
                             "'\\x98\\x80'");
    CHECK(result["stdout"]["text"] == "\xF0\x9F\x98\x80");
    CHECK(result["stderr"]["text"] == "E\n");
    auto invalid = world.json(mode, "printf 'a\\xffb'");
    CHECK(invalid["stdout"]["text"] == "a" + kReplacement + "b");
  }
}

BACKEND_TEST("a tail begins with a whole character wherever it is cut") {
  constexpr std::size_t kLimit = 64000;
  for (const std::string character : {"\xC3\xA9", "\xF0\x9F\x98\x80"})
    for (std::size_t over : {0U, 1U, 2U, 3U, 4U, 5U}) {
      const std::size_t total = kLimit - 1 + over;
      const std::size_t times = total / character.size();
      const std::string all =
          std::string(total - times * character.size(), 'a') + repeat(character, times);
      write_file(world.workspace() + "/text", all, 0644);
      auto result = world.json("read-only", "cat text");
      INFO(total);
      const std::string text = result["stdout"]["text"];
      CHECK(text.find(kReplacement) == std::string::npos);
      CHECK(all.ends_with(text));
      CHECK(text.size() <= kLimit);
      CHECK(text.size() + 4 > std::min(kLimit, total));
      CHECK(result["stdout"]["bytes"] == total);
      CHECK(result["stdout"]["truncated"] == (total > kLimit));
      if (total > kLimit) CHECK(take_spill(result["stdout"]) == all);
    }
}

BACKEND_TEST("a line of any length has its end and its count") {
  for (const char* end : {"", "; echo; echo END"}) {
    auto result =
        world.json("read-only", std::string("head -c 20000000 /dev/zero | tr '\\0' x") + end);
    CHECK(result["outcome"] == "ok");
    CHECK(result["stdout"]["truncated"] == true);
    CHECK(result["stdout"]["bytes"] == 20000000 + (*end ? 5 : 0));
    const std::string text = result["stdout"]["text"];
    CHECK(text.size() == 64000);
    CHECK(text.ends_with(*end ? "xxx\nEND\n" : "xxx"));
    const std::filesystem::path path = result["stdout"]["spillPath"].get<std::string>();
    CHECK(std::filesystem::file_size(path) == 20000000U + (*end ? 5 : 0));
    std::filesystem::remove_all(path.parent_path());
  }
}

BACKEND_TEST("a flood stops at the timeout and on disk at its cap") {
  const std::string path = world.workspace() + "/config.json";
  write_file(path, R"({"plugins": [{"plugin": "sandbox"}, {"plugin": "sandbox-local"},
    {"plugin": "bash-sandbox", "config": {"maxSpillBytes": 100000, "keepSpills": true}}]})");
  for (const auto& mode : kModes) {
    auto result = world.json(mode, "yes", {"--timeout-ms", "1000", "--config", path});
    CHECK(result["outcome"] == "timed-out");
    CHECK(result["durationMs"] < 20000);
    CHECK(result["stdout"]["spillNote"] == "the spill file ends at its cap");
    CHECK(take_spill(result["stdout"]).size() == 100000);
  }
}

BACKEND_TEST("a command that reads its own spill comes to an end at the cap") {
  const std::string path = world.outside_file(
      "config.json", R"({"plugins": [{"plugin": "sandbox"}, {"plugin": "sandbox-local"},
    {"plugin": "bash-sandbox", "config": {"maxSpillBytes": 1000000, "keepSpills": true}}]})");
  for (const auto& mode : kModes) {
    INFO(mode);
    auto result =
        world.json(mode,
                   "seq 1 30000; sleep 0.3; cat "
                   "/var/tmp/stockade-subprocess-*/*stdout* 2>/dev/null | head -c 9000000",
                   {"--timeout-ms", "20000", "--config", path});
    CHECK(result["outcome"] == "ok");
    CHECK(result["stdout"]["bytes"] >= 2 * 168894);
    CHECK(take_spill(result["stdout"]).size() <= 1000000);
  }
}

BACKEND_TEST("a spill file is private and no later call can write it") {
  auto result = world.json("read-only", "seq 1 100000");
  const std::string path = result["stdout"]["spillPath"];
  struct stat file {};
  struct stat directory {};
  REQUIRE(stat(path.c_str(), &file) == 0);
  REQUIRE(stat(std::filesystem::path(path).parent_path().c_str(), &directory) == 0);
  CHECK((file.st_mode & 07777) == 0600);
  CHECK((directory.st_mode & 07777) == 0700);
  CHECK(file.st_uid == world.uid);
  for (const char* mode : {"read-only", "workspace-write"}) {
    INFO(mode);
    CHECK(world.json(mode, "wc -c < " + path)["stdout"]["text"] == "588895\n");
    CHECK(world.json(mode, "echo x >> " + path)["outcome"] == "denied");
    CHECK(world.json(mode, "rm -f " + path)["outcome"] == "denied");
  }
  CHECK(world.json("danger-full-access", "echo x >> " + path)["outcome"] == "ok");
  CHECK(take_spill(result["stdout"]).size() == 588897);
}

BACKEND_TEST("a host that ends takes its spill files with it") {
  ProgramOptions options;
  options.input =
      nlohmann::json{{"id", 1}, {"tool", "bash"}, {"arguments", {{"command", "seq 1 100000"}}}}
          .dump() +
      "\n" +
      nlohmann::json{{"id", 2},
                     {"tool", "bash"},
                     {"arguments",
                      {{"command",
                        "cat /var/tmp/stockade-subprocess-*/*stdout.log "
                        "2>/dev/null | grep -c ^77777$"}}}}
          .dump() +
      "\n";
  auto program = world.stockade({"run", "--backend", world.backend, "-"}, options);
  auto end = program.out.find('\n');
  auto first = nlohmann::json::parse(program.out.substr(0, end));
  auto second = nlohmann::json::parse(program.out.substr(end + 1));
  const std::string path = first["structuredContent"]["stdout"]["spillPath"];
  // While the host runs, its results can be read, also from inside.
  CHECK(second["structuredContent"]["stdout"]["text"].get<std::string>() >= "1\n");
  CHECK_FALSE(exists(path));
  CHECK_FALSE(exists(std::filesystem::path(path).parent_path()));
}

BACKEND_TEST("bytes of any kind make one valid line of JSON") {
  for (const auto& mode : kModes) {
    auto result =
        world.json(mode, "printf 'a\\377\\0b\\033[31m\\r\\n'; printf '\\xed\\xa0\\x80' >&2");
    CHECK(result["stdout"]["text"] == "a" + kReplacement + std::string("\0b\033[31m\r\n", 9));
    CHECK(result["stdout"]["bytes"] == 11);
    CHECK(result["stderr"]["text"].get<std::string>().starts_with(kReplacement));
    CHECK(world.json(mode, "head -c 60000 /dev/urandom")["stdout"]["bytes"] == 60000);
    // In a denial and in an error of the request, too.
    auto denied = world.json("read-only", "touch $'\\xff\\n'");
    CHECK(denied["outcome"] == "denied");
    CHECK(world.json(mode, "true", {"--cwd", "/no\xff"})["error"]["message"].is_string());
  }
}
