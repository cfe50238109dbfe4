// SPDX-License-Identifier: MIT
#include "framework/library.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "framework/error.hpp"
#include "framework/fd.hpp"
#include "framework/plugin.hpp"

namespace stockade {

namespace {

Error unusable(const std::string& path, const std::string& why) {
  return Error("PLUGIN_UNUSABLE", "cannot use the plugin file " + path + ": " + why, path);
}

bool read_at(int fd, off_t offset, void* out, std::size_t size) {
  return pread(fd, out, size, offset) == static_cast<ssize_t>(size);
}

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "library: name this machine's ELF number here"
#endif

}  // namespace

void check_library_file(const std::string& path) {
  // O_NONBLOCK: opening a FIFO waits for a writer otherwise.
  Fd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) throw unusable(path, describe_errno(errno));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) throw unusable(path, describe_errno(errno));
  if (!S_ISREG(info.st_mode)) throw unusable(path, "it is not a regular file");

  const auto size = static_cast<std::uint64_t>(info.st_size);
  Elf64_Ehdr header{};
  if (!read_at(fd.get(), 0, &header, sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    throw unusable(path, "it is no ELF shared object; build or install the plugin again");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine)
    throw unusable(path, "it was built for another architecture");
  if (header.e_type != ET_DYN) throw unusable(path, "it is no shared object");
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0)
    throw unusable(path, "its program headers are damaged; build or install the plugin again");
  for (Elf64_Half i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    auto offset = static_cast<off_t>(header.e_phoff + i * sizeof segment);
    if (!read_at(fd.get(), offset, &segment, sizeof segment) || segment.p_offset > size ||
        (segment.p_type == PT_LOAD && segment.p_filesz > size - segment.p_offset))
      throw unusable(path, "it is cut short; build or install the plugin again");
  }
}

PluginDefinition open_plugin(Loop& loop, const std::string& path) {
  check_library_file(path);
  dlerror();
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    throw unusable(path, why ? why : "dlopen failed");
  }
  std::shared_ptr<const void> code(
      handle, [&loop](void* library) { loop.post([library] { dlclose(library); }); });

  auto* entry = reinterpret_cast<const PluginDescriptor* (*)()>(dlsym(handle, "stockade_plugin"));
  if (!entry) throw unusable(path, "it has no symbol stockade_plugin; see STOCKADE_PLUGIN");
  const PluginDescriptor* descriptor = entry();
  if (!descriptor || descriptor->magic != kPluginMagic)
    throw unusable(path, "its descriptor is not one of stockade's");
  if (descriptor->abi != kPluginAbi)
    throw unusable(path, "it was built for plugin ABI " + std::to_string(descriptor->abi) +
                             ", this host has " + std::to_string(kPluginAbi) + "; rebuild it");
  if (std::strcmp(descriptor->fingerprint, kPluginFingerprint) != 0)
    throw unusable(path, std::string("it was built with [") + descriptor->fingerprint +
                             "], this host with [" + kPluginFingerprint + "]; rebuild it");
  PluginDefinition definition;
  definition.code = std::move(code);
  descriptor->define(definition);
  return definition;
}

std::string framework_library() {
  Dl_info info{};
  char resolved[PATH_MAX];
  if (!dladdr(reinterpret_cast<const void*>(&check_library_file), &info) ||
      !realpath(info.dli_fname, resolved))
    throw Error("INSTALLATION_UNKNOWN", "cannot tell where libstockade.so was loaded from");
  return resolved;
}

std::string installation_directory() {
  std::string path = framework_library();
  return path.substr(0, path.rfind('/')) + "/stockade";
}

}  // namespace stockade
