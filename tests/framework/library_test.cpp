// SPDX-License-Identifier: MIT
#include "framework/library.hpp"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "framework/plugin.hpp"
#include "tests/framework/harness.hpp"
#include "tests/framework/objects.hpp"
#include "tests/framework/objects/greeter.hpp"
#include "tests/support/catch.hpp"

namespace stockade::test {
namespace {

Failure open_failure(const std::string& path) {
  Loop loop;
  return failure_of([&] { open_plugin(loop, path); });
}

void check_unusable(const std::string& path, const std::string& why) {
  INFO(path);
  auto failure = open_failure(path);
  CHECK(failure.code == "PLUGIN_UNUSABLE");
  CHECK(failure.operand == path);
  CHECK_THAT(failure.text, ContainsSubstring(path) && ContainsSubstring(why));
}

// A copy of the minimal plugin with other bytes at `offset`.
template <class T>
std::string patched(const Scratch& scratch, std::size_t offset, T value) {
  std::string bytes = read_file(object_file("test-minimal"));
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  std::string path = scratch / "patched.so";
  write_file(path, bytes);
  return path;
}

// Where the part of the file that gets mapped ends.
std::size_t mapped_end(const std::string& bytes) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::size_t end = 0;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD)
      end = std::max<std::size_t>(end, segment.p_offset + segment.p_filesz);
  }
  return end;
}

TEST_CASE("library: a plugin file tells its name and its needs") {
  Loop loop;
  auto minimal = open_plugin(loop, object_file("test-minimal"));
  CHECK(minimal.name == "test-minimal");
  CHECK(minimal.inject.empty());
  CHECK(minimal.code != nullptr);
  auto user = open_plugin(loop, object_file("test-greeting-user"));
  CHECK(user.inject == Trace{"test-greeter/1"});
}

TEST_CASE("library: a plugin checks its config by itself") {
  Loop loop;
  auto configured = open_plugin(loop, object_file("test-configured"));
  CHECK_NOTHROW(configured.check_config({{"speed", "very-fast"}, {"retryCount", 10}}));
  CHECK_NOTHROW(configured.check_config(nullptr));
  auto unknown = failure_of([&] { configured.check_config({{"retrycount", 1}}); });
  CHECK(unknown.code == "CONFIG_INVALID");
  CHECK_THAT(unknown.text,
             ContainsSubstring("test-configured") && ContainsSubstring("\"retryCount\""));
  auto beyond = failure_of([&] { configured.check_config({{"retryCount", 11}}); });
  CHECK_THAT(beyond.text, ContainsSubstring("expected at most 10"));
}

TEST_CASE("library: is unmapped on a later turn than its last use") {
  Loop loop;
  REQUIRE_FALSE(mapped("test-minimal"));
  {
    auto minimal = open_plugin(loop, object_file("test-minimal"));
    CHECK(mapped("test-minimal"));
  }
  CHECK(mapped("test-minimal"));
  loop.drain();
  CHECK_FALSE(mapped("test-minimal"));
}

TEST_CASE("library: stays mapped while one of two users remains") {
  Loop loop;
  auto first = open_plugin(loop, object_file("test-minimal"));
  { auto second = open_plugin(loop, object_file("test-minimal")); }
  loop.drain();
  CHECK(mapped("test-minimal"));
  first = {};
  loop.drain();
  CHECK_FALSE(mapped("test-minimal"));
}

TEST_CASE("library: is gone after its fiber was disposed") {
  Tree tree;
  auto fiber = tree.root.plugin(open_plugin(tree.loop, object_file("test-greeter")), {});
  tree.settle(fiber);
  CHECK(tree.root.find<Greeter>()->greet("you") == "hello you");
  tree.dispose(fiber);
  fiber.reset();
  tree.loop.drain();
  CHECK_FALSE(mapped("test-greeter"));
}

TEST_CASE("library: is gone after its body threw an exception of its own type") {
  Tree tree;
  auto fiber = tree.root.plugin(open_plugin(tree.loop, object_file("test-thrower")), {});
  CHECK_THROWS_WITH(tree.settle(fiber), "the body's own error");
  tree.dispose(fiber);
  fiber.reset();
  tree.loop.drain();
  CHECK_FALSE(mapped("test-thrower"));
}

TEST_CASE("library: a service that is held keeps the code mapped") {
  Tree tree;
  auto fiber = tree.root.plugin(open_plugin(tree.loop, object_file("test-greeter")),
                                {{"greeting", "good day"}});
  tree.settle(fiber);
  auto held = tree.root.find<Greeter>();
  tree.dispose(fiber);
  fiber.reset();
  tree.loop.drain();
  CHECK(tree.root.find<Greeter>() == nullptr);
  CHECK(mapped("test-greeter"));
  CHECK(held->greet("sir") == "good day sir");
  held.reset();
  tree.loop.drain();
  CHECK_FALSE(mapped("test-greeter"));
}

TEST_CASE("library: a context hands out its code to keep") {
  Tree tree;
  auto fiber = tree.root.plugin(open_plugin(tree.loop, object_file("test-minimal")), {});
  tree.settle(fiber);
  auto code = Context(fiber, fiber->scope()).code();
  tree.dispose(fiber);
  fiber.reset();
  tree.loop.drain();
  CHECK(mapped("test-minimal"));
  code.reset();
  tree.loop.drain();
  CHECK_FALSE(mapped("test-minimal"));
  CHECK(tree.root.code() == nullptr);
}

TEST_CASE("library: can be loaded again after it went") {
  Tree tree;
  for (int round = 0; round < 3; ++round) {
    auto fiber = tree.root.plugin(open_plugin(tree.loop, object_file("test-greeter")), {});
    tree.settle(fiber);
    CHECK(tree.root.find<Greeter>()->greet("you") == "hello you");
    tree.dispose(fiber);
    fiber.reset();
    tree.loop.drain();
    CHECK_FALSE(mapped("test-greeter"));
  }
}

TEST_CASE("library: a missing file is named") {
  Scratch scratch;
  check_unusable(scratch / "missing.so", "ENOENT");
}

TEST_CASE("library: a directory is refused") {
  Scratch scratch;
  check_unusable(scratch.path(), "not a regular file");
}

TEST_CASE("library: a fifo is refused without waiting for a writer") {
  Scratch scratch;
  std::string path = scratch / "fifo.so";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  alarm(10);  // a host that waits would wait for good
  check_unusable(path, "not a regular file");
  alarm(0);
}

TEST_CASE("library: a text file is refused") {
  Scratch scratch;
  write_file(scratch / "short.so", "text\n");
  write_file(scratch / "long.so", std::string(100000, 'x'));
  write_file(scratch / "empty.so", "");
  check_unusable(scratch / "short.so", "no ELF shared object");
  check_unusable(scratch / "long.so", "no ELF shared object");
  check_unusable(scratch / "empty.so", "no ELF shared object");
}

TEST_CASE("library: a file that is cut short is refused before it is mapped") {
  Scratch scratch;
  const std::string bytes = read_file(object_file("test-minimal"));
  const std::size_t end = mapped_end(bytes);
  REQUIRE(end > 1000);
  REQUIRE(end <= bytes.size());
  for (std::size_t length : {std::size_t{1}, sizeof(Elf64_Ehdr) - 1, sizeof(Elf64_Ehdr),
                             sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), end / 4, end / 2, end - 1}) {
    std::string path = scratch / ("cut-" + std::to_string(length) + ".so");
    write_file(path, bytes.substr(0, length));
    check_unusable(path, "build or install the plugin again");
    CHECK(failure_of([&] { check_library_file(path); }).code == "PLUGIN_UNUSABLE");
    CHECK_FALSE(mapped("cut-" + std::to_string(length)));
  }
  write_file(scratch / "whole.so", bytes.substr(0, end));
  CHECK_NOTHROW(check_library_file(scratch / "whole.so"));
}

TEST_CASE("library: an object for another machine is refused") {
  Scratch scratch;
  check_unusable(patched(scratch, offsetof(Elf64_Ehdr, e_machine), Elf64_Half{EM_S390}),
                 "another architecture");
  check_unusable(patched(scratch, EI_CLASS, static_cast<unsigned char>(ELFCLASS32)),
                 "another architecture");
}

TEST_CASE("library: an executable is no shared object") {
  Scratch scratch;
  check_unusable(patched(scratch, offsetof(Elf64_Ehdr, e_type), Elf64_Half{ET_EXEC}),
                 "no shared object");
}

TEST_CASE("library: damaged program headers are refused") {
  Scratch scratch;
  check_unusable(patched(scratch, offsetof(Elf64_Ehdr, e_phnum), Elf64_Half{0}), "damaged");
  check_unusable(patched(scratch, offsetof(Elf64_Ehdr, e_phentsize), Elf64_Half{1}), "damaged");
  check_unusable(patched(scratch, offsetof(Elf64_Ehdr, e_phoff), ~Elf64_Off{0}), "cut short");
}

TEST_CASE("library: an object without the entry symbol is refused and let go") {
  Loop loop;
  auto path = object_file("test-no-entry");
  auto failure = failure_of([&] { open_plugin(loop, path); });
  CHECK(failure.code == "PLUGIN_UNUSABLE");
  CHECK_THAT(failure.text, ContainsSubstring(path) && ContainsSubstring("stockade_plugin"));
  loop.drain();
  CHECK_FALSE(mapped("test-no-entry"));
}

TEST_CASE("library: another ABI number is refused and both are named") {
  auto path = object_file("test-other-abi");
  check_unusable(path, "plugin ABI " + std::to_string(kPluginAbi + 1));
  check_unusable(path, "this host has " + std::to_string(kPluginAbi));
  CHECK_FALSE(mapped("test-other-abi"));
}

TEST_CASE("library: another fingerprint is refused and both are named") {
  auto path = object_file("test-other-fingerprint");
  check_unusable(path, "[another compiler]");
  check_unusable(path, std::string("[") + kPluginFingerprint + "]");
}

TEST_CASE("library: a static constructor that prints is refused and its text kept from stdout") {
  auto path = object_file("test-printing-constructor");
  check_unusable(path, "writes to standard output (\"hello from a constructor\")");
  CHECK_FALSE(mapped("test-printing-constructor"));
}

TEST_CASE("library: a static constructor that throws is refused and the host runs on") {
  check_unusable(object_file("test-throwing-constructor"), "threw: constructor error");
  Loop loop;
  CHECK(open_plugin(loop, object_file("test-minimal")).name == "test-minimal");
}

TEST_CASE("library: a missing dependency is named beside the file") {
  check_unusable(object_file("test-dependent"), "libtest_dependency.so");
}

TEST_CASE("library: a file may be overwritten while its code runs") {
  Scratch scratch;
  Tree tree;
  const std::string path = scratch / "greeter.so";
  write_file(path, read_file(object_file("test-greeter")));
  auto fiber = tree.root.plugin(open_plugin(tree.loop, path), {});
  tree.settle(fiber);
  write_file(path, std::string(read_file(path).size(), '\0'));
  CHECK(tree.root.find<Greeter>()->greet("you") == "hello you");
}

TEST_CASE("library: what became of it is told") {
  Loop loop;
  auto definition = open_plugin(loop, object_file("test-minimal"));
  auto status = definition.library;
  CHECK(status->state == LibraryStatus::State::mapped);
  CHECK_THAT(status->explain(), ContainsSubstring(object_file("test-minimal")));
  definition = {};
  loop.drain();
  CHECK(status->state == LibraryStatus::State::unmapped);
}

TEST_CASE("library: the fingerprint has the project, the compiler and the libraries") {
  const std::string fingerprint = kPluginFingerprint;
  for (const char* part : {"stockade-" STOCKADE_VERSION, "libstdc++-cxx11-1", "json-3."})
    CHECK_THAT(fingerprint, ContainsSubstring(part));
  CHECK(fingerprint.find("  ") == std::string::npos);
}

TEST_CASE("library: a foreign descriptor is refused") {
  check_unusable(object_file("test-other-magic"), "not one of stockade's");
}

TEST_CASE("library: the installation is where the framework was loaded from") {
  auto directory = installation_directory();
  CHECK(directory.front() == '/');
  CHECK(directory.ends_with("/stockade"));
  auto libraries = directory.substr(0, directory.rfind('/') + 1);
  CHECK_THAT(read_file("/proc/self/maps"), ContainsSubstring(libraries + "libstockade.so"));
  Scratch scratch;
  char before[4096];
  REQUIRE(getcwd(before, sizeof before) != nullptr);
  REQUIRE(chdir(scratch.path().c_str()) == 0);
  CHECK(installation_directory() == directory);
  CHECK(chdir(before) == 0);
}

}  // namespace
}  // namespace stockade::test
