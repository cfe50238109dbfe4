// SPDX-License-Identifier: MIT
#include "bash-sandbox/spill.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <regex>

#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using stockade::test::read_file;
using stockade::test::wait_until;

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
  ~Rig() {
    if (!first.empty()) std::filesystem::remove_all(std::filesystem::path(first).parent_path());
  }
  std::unique_ptr<Spill> open(std::string_view stream, std::uint64_t cap = 1 << 30) {
    auto spill = std::make_unique<Spill>(loop, directory, stream, cap, [this] { ++drained; });
    if (first.empty() && spill->path()) first = *spill->path();
    return spill;
  }
  void flush(const Spill& spill) {
    REQUIRE(wait_until(loop, [&] { return spill.pending() == 0; }));
  }
  Loop loop;
  SpillDirectory directory;
  std::string first;
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
  SpillDirectory directory;
  std::string error;
  std::string path;
  Fd first = directory.create_file("stdout", path, error);
  REQUIRE(first);
  CHECK(error.empty());
  auto own = std::filesystem::path(path).parent_path();
  auto moved = own.string() + "-moved";
  stockade::test::Scratch outside("/var/tmp");
  std::filesystem::rename(own, moved);
  std::filesystem::create_directory_symlink(outside.path(), own);
  Fd second = directory.create_file("stdout", path, error);
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
