// SPDX-License-Identifier: MIT
#include "bash-sandbox/spill.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <regex>

#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using stockade::test::exists;
using stockade::test::read_file;
using stockade::test::Scratch;
using stockade::test::wait_until;
using stockade::test::write_file;

namespace {

// A soft limit of this process, put back at the end.
class SoftLimit {
 public:
  SoftLimit(__rlimit_resource_t resource, rlim_t value) : resource_(resource) {
    getrlimit(resource_, &before_);
    rlimit now{value, before_.rlim_max};
    setrlimit(resource_, &now);
  }
  ~SoftLimit() { setrlimit(resource_, &before_); }
  SoftLimit(const SoftLimit&) = delete;
  SoftLimit& operator=(const SoftLimit&) = delete;

 private:
  __rlimit_resource_t resource_;
  rlimit before_{};
};

struct Rig {
  explicit Rig(SpillLimits limits = {}) : directory(loop, limits) {}
  std::unique_ptr<Spill> open(std::string_view stream, std::uint64_t cap = 1 << 30,
                              const std::string& workspace = "") {
    return std::make_unique<Spill>(loop, directory, stream, workspace, cap, [this] { ++drained; });
  }
  void close(Spill& spill) {
    spill.close();
    REQUIRE(wait_until(loop, [&] { return spill.closed(); }));
  }
  void flush(const Spill& spill) {
    REQUIRE(wait_until(loop, [&] { return spill.pending() == 0; }));
  }
  Loop loop;
  SpillDirectory directory;
  int drained = 0;
};

mode_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

}  // namespace

TEST_CASE("spill: its file is private and in a private directory that commands cannot write") {
  Rig rig;
  mode_t before = umask(0);
  auto spill = rig.open("stdout");
  umask(before);
  REQUIRE(spill->path());
  auto path = std::filesystem::path(*spill->path());
  CHECK(mode_of(path) == 0600);
  CHECK(mode_of(path.parent_path()) == 0700);
  CHECK(path.parent_path().parent_path() == "/var/tmp");
}

TEST_CASE("spill: a file name tells the process and the stream and cannot be guessed") {
  Rig rig;
  auto one = rig.open("stdout");
  auto two = rig.open("stderr");
  auto name = [](const Spill& spill) {
    return std::filesystem::path(*spill.path()).filename().string();
  };
  std::string pid = std::to_string(getpid());
  CHECK(std::regex_match(
      name(*one), std::regex("stockade-subprocess-" + pid + "-1-[0-9a-f]{12}-stdout\\.log")));
  CHECK(std::regex_match(
      name(*two), std::regex("stockade-subprocess-" + pid + "-2-[0-9a-f]{12}-stderr\\.log")));
  CHECK(name(*one).substr(0, 40) != name(*two).substr(0, 40));
  CHECK(std::filesystem::path(*one->path()).parent_path() ==
        std::filesystem::path(*two->path()).parent_path());
}

TEST_CASE("spill: a directory that was put in place of the private one gets nothing") {
  Loop loop;
  SpillDirectory directory(loop);
  std::string error;
  std::string path;
  Fd first = directory.create_file("stdout", "", path, error);
  REQUIRE(first);
  CHECK(error.empty());
  auto own = std::filesystem::path(path).parent_path();
  auto moved = own.string() + "-moved";
  stockade::test::Scratch outside("/var/tmp");
  std::filesystem::rename(own, moved);
  std::filesystem::create_directory_symlink(outside.path(), own);
  Fd second = directory.create_file("stdout", "", path, error);
  CHECK(std::filesystem::is_empty(outside.path()));
  std::filesystem::remove(own);
  std::filesystem::remove_all(moved);
}

TEST_CASE("spill: what is written arrives in order and the end of it is told") {
  Rig rig;
  auto spill = rig.open("stdout");
  std::string all;
  for (int i = 0; i < 2000; ++i) {
    std::string piece = std::to_string(i) + "\n";
    all += piece;
    spill->write(piece);
  }
  CHECK(spill->pending() == all.size());
  rig.flush(*spill);
  CHECK(rig.drained > 0);
  CHECK(read_file(*spill->path()) == all);
  CHECK_FALSE(spill->note());
}

TEST_CASE("spill: its cap cuts at the byte and is noted") {
  Rig rig;
  auto exact = rig.open("stdout", 10);
  exact->write("0123456789");
  rig.flush(*exact);
  CHECK_FALSE(exact->note());
  exact->write("x");
  rig.flush(*exact);
  CHECK(exact->note() == "the spill file ends at its cap");
  CHECK(read_file(*exact->path()) == "0123456789");

  auto across = rig.open("stdout", 10);
  across->write("01234567");
  across->write("89abc");
  rig.flush(*across);
  CHECK(read_file(*across->path()) == "0123456789");
}

TEST_CASE("spill: one that is dropped finishes what it was given") {
  Rig rig;
  auto spill = rig.open("stdout");
  std::string path = *spill->path();
  spill->write(std::string(100000, 'x'));
  spill.reset();
  rig.loop.drain();
  CHECK(rig.drained == 0);
  CHECK(read_file(path).size() == 100000);
}

TEST_CASE("spill: a disk that takes no more ends the spilling with a note") {
  Rig rig;
  auto spill = rig.open("stdout");
  auto old = signal(SIGXFSZ, SIG_IGN);
  {
    SoftLimit small(RLIMIT_FSIZE, 1000);
    spill->write(std::string(5000, 'x'));
    rig.flush(*spill);
  }
  signal(SIGXFSZ, old);
  CHECK(rig.drained > 0);
  REQUIRE(spill->note());
  CHECK_THAT(*spill->note(), ContainsSubstring("spilling ended after 1000 bytes: EFBIG"));
  // Later output is passed over and holds nothing up.
  spill->write("more");
  CHECK(spill->pending() == 0);
  CHECK(read_file(*spill->path()).size() == 1000);
}

TEST_CASE("spill: without a descriptor there is no file and a note that says so") {
  Rig rig;
  rig.open("stdout");  // the directory exists
  std::unique_ptr<Spill> spill;
  {
    SoftLimit none(RLIMIT_NOFILE, 3);
    spill = rig.open("stderr");
  }
  CHECK_FALSE(spill->path());
  REQUIRE(spill->note());
  CHECK(spill->note()->starts_with("not spilled: cannot create "));
  CHECK_THAT(*spill->note(), ContainsSubstring("EMFILE"));
  spill->write("text");
  CHECK(spill->pending() == 0);
}

TEST_CASE("spill: its directory goes with the last who refers to it unless it is to be kept") {
  for (bool keep : {false, true}) {
    Loop loop;
    std::string path;
    {
      SpillDirectory directory(loop, {.keep = keep});
      Spill spill(loop, directory, "stdout", "", 1000, nullptr);
      path = *spill.path();
      spill.write("text");
      spill.close();
    }
    loop.drain();
    CHECK(exists(path) == keep);
    auto directory = std::filesystem::path(path).parent_path();
    CHECK(exists(directory) == keep);
    std::filesystem::remove_all(directory);
  }
}

TEST_CASE("spill: the directory of a dead host is removed once it is old and no other") {
  Scratch base("/var/tmp");
  auto make = [&](const std::string& name, int mode) {
    std::string path = base / name;
    std::filesystem::create_directory(path);
    write_file(path + "/stockade-subprocess-1-1-aa-stdout.log", "x");
    chmod(path.c_str(), static_cast<mode_t>(mode));
    return path;
  };
  std::string dead = make("stockade-subprocess-dead", 0700);
  std::string alive = make("stockade-subprocess-alive", 0700);
  std::string open_to_all = make("stockade-subprocess-open", 0755);
  std::string foreign = make("something-else", 0700);
  std::string full = make("stockade-subprocess-full", 0700);
  write_file(full + "/precious", "x");
  std::string elsewhere = make("elsewhere", 0700);
  std::filesystem::create_directory_symlink(elsewhere, base / "stockade-subprocess-link");
  Fd lock(open(alive.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(flock(lock.get(), LOCK_EX) == 0);

  CHECK(SpillDirectory::remove_stale_in(base.path(), 3600) == 0);
  CHECK(exists(dead));
  CHECK(SpillDirectory::remove_stale_in(base.path(), 0) == 1);
  CHECK_FALSE(exists(dead));
  for (const auto& kept : {alive, open_to_all, foreign, full + "/precious", elsewhere}) {
    CAPTURE(kept);
    CHECK(exists(kept));
  }
  CHECK(exists(elsewhere + "/stockade-subprocess-1-1-aa-stdout.log"));
}

TEST_CASE("spill: a host that lives keeps others from its directory") {
  Rig rig;
  auto spill = rig.open("stdout");
  SpillDirectory::remove_stale_in("/var/tmp", 0);
  CHECK(exists(*spill->path()));
}

TEST_CASE("spill: nothing is written where the command's own workspace would hold it") {
  Rig rig;
  for (const char* workspace : {"/var/tmp", "/var", "/"}) {
    auto spill = rig.open("stdout", 1000, workspace);
    CHECK_FALSE(spill->path());
    CHECK(spill->closed());
    CHECK_THAT(spill->note().value(), ContainsSubstring("lies in the workspace"));
  }
  CHECK(rig.open("stdout", 1000, "/var/tmp/workspace")->path());
}

TEST_CASE("spill: the oldest files make room for new ones and those in use stay") {
  Rig rig({.total_bytes = 100});
  auto used = rig.open("stdout");
  used->write(std::string(40, 'a'));
  rig.flush(*used);
  std::string old_path;
  {
    auto old = rig.open("stdout");
    old->write(std::string(40, 'b'));
    rig.flush(*old);
    old_path = *old->path();
  }
  CHECK(exists(old_path));
  auto fresh = rig.open("stdout");
  fresh->write(std::string(50, 'c'));
  rig.flush(*fresh);
  CHECK_FALSE(exists(old_path));
  CHECK(read_file(*used->path()).size() == 40);
  CHECK(read_file(*fresh->path()).size() == 50);
  CHECK_FALSE(fresh->note());
  fresh->write(std::string(50, 'd'));
  rig.flush(*fresh);
  CHECK(read_file(*fresh->path()).size() == 60);
  CHECK_THAT(fresh->note().value(), ContainsSubstring("have reached their cap"));
}

TEST_CASE("spill: a file that cannot be closed is advertised no longer") {
  Rig rig;
  auto spill = rig.open("stdout");
  spill->write("text");
  rig.flush(*spill);
  // As a file system that reports its errors at close does.
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry, ignored) == *spill->path())
      ::close(std::stoi(entry.path().filename()));
  }
  rig.close(*spill);
  CHECK_FALSE(spill->path());
  CHECK_THAT(spill->note().value(), ContainsSubstring("EBADF"));
}

TEST_CASE("spill: one that is given up says so and holds nothing up") {
  Rig rig;
  auto spill = rig.open("stdout");
  spill->write(std::string(1000, 'x'));
  CHECK(spill->pending() == 1000);
  spill->abandon();
  CHECK(spill->pending() == 0);
  CHECK(spill->closed());
  CHECK_THAT(spill->note().value(), ContainsSubstring("the disk did not take the rest in time"));
  spill->write("more");
  CHECK(spill->pending() == 0);
  rig.loop.drain();
  CHECK(rig.drained == 0);
}
