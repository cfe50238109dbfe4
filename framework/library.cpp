// SPDX-License-Identifier: MIT
#include "framework/library.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>

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

// `path` is for messages.
void check_elf(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) throw unusable(path, describe_errno(errno));
  if (!S_ISREG(info.st_mode)) throw unusable(path, "it is not a regular file");

  const auto size = static_cast<std::uint64_t>(info.st_size);
  Elf64_Ehdr header{};
  if (!read_at(fd, 0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    throw unusable(path, "it is no ELF shared object; build or install the plugin again");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine)
    throw unusable(path, "it was built for another architecture");
  if (header.e_type != ET_DYN) throw unusable(path, "it is no shared object");
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0)
    throw unusable(path, "its program headers are damaged; build or install the plugin again");
  for (Elf64_Half i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    auto offset = static_cast<off_t>(header.e_phoff + i * sizeof segment);
    if (!read_at(fd, offset, &segment, sizeof segment) || segment.p_offset > size ||
        (segment.p_type == PT_LOAD && segment.p_filesz > size - segment.p_offset))
      throw unusable(path, "it is cut short; build or install the plugin again");
  }
}

Fd open_file(const std::string& path) {
  // O_NONBLOCK: opening a FIFO waits for a writer otherwise.
  Fd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) throw unusable(path, describe_errno(errno));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) throw unusable(path, describe_errno(errno));
  if (!S_ISREG(info.st_mode)) throw unusable(path, "it is not a regular file");
  return fd;
}

// A memory file and not one on disk: nothing stays behind when the host is killed, and no mount
// option forbids to map it. Its name in the maps is that of the file.
Fd private_copy(const std::string& path) {
  constexpr std::size_t kMaxName = 249;
  Fd from = open_file(path);
  const std::string name = path.size() > kMaxName ? path.substr(path.size() - kMaxName) : path;
#ifndef MFD_NOEXEC_SEAL
  constexpr unsigned MFD_NOEXEC_SEAL = 8;  // since Linux 6.3, where a host may demand it
#endif
  Fd to(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_NOEXEC_SEAL));
  if (!to) to = Fd(memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!to) throw unusable(path, "it cannot be copied: " + describe_errno(errno));
  for (;;) {
    const ssize_t n = sendfile(to.get(), from.get(), nullptr, 1U << 30);
    if (n == 0) return to;
    if (n < 0 && errno != EINTR)
      throw unusable(path, "it cannot be copied: " + describe_errno(errno));
  }
}

// Names the copy for as long as it is open, to other processes as well: dlopen knows libraries by
// their names, and a name that is in use would give the old one.
std::string copy_path(const Fd& copy) {
  char self[32];
  const ssize_t n = readlink("/proc/self", self, sizeof self);
  return "/proc/" + (n > 0 ? std::string(self, static_cast<std::size_t>(n)) : "self") + "/fd/" +
         std::to_string(copy.get());
}

bool in_maps(int copy) {
  struct stat info {};
  if (fstat(copy, &info) != 0) return true;
  std::ifstream maps("/proc/self/maps");
  std::string range, access, offset, device, inode, name;
  while (maps >> range >> access >> offset >> device >> inode && std::getline(maps, name))
    if (inode == std::to_string(info.st_ino) && name.find("/memfd:") != std::string::npos)
      return true;
  return false;
}

// Why dlclose did not unmap it, as far as its dynamic section and symbols tell.
std::string pin_of(int copy) {
  Elf64_Ehdr header{};
  if (!read_at(copy, 0, &header, sizeof header)) return "its file cannot be read";
  bool thread_exit = false;
  std::string unique;
  for (Elf64_Half i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section{};
    Elf64_Shdr strings{};
    auto section_at = [&](Elf64_Word index, Elf64_Shdr& out) {
      return read_at(copy, static_cast<off_t>(header.e_shoff + index * sizeof out), &out,
                     sizeof out);
    };
    if (!section_at(i, section)) break;
    if (section.sh_type == SHT_DYNAMIC) {
      Elf64_Dyn entry{};
      for (Elf64_Xword at = 0; at + sizeof entry <= section.sh_size; at += sizeof entry)
        if (read_at(copy, static_cast<off_t>(section.sh_offset + at), &entry, sizeof entry) &&
            entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_NODELETE))
          return "it was linked with -z nodelete";
    }
    if (section.sh_type != SHT_DYNSYM || !section_at(section.sh_link, strings)) continue;
    Elf64_Sym symbol{};
    for (Elf64_Xword at = 0; at + sizeof symbol <= section.sh_size; at += sizeof symbol) {
      char name[128] = {};
      if (!read_at(copy, static_cast<off_t>(section.sh_offset + at), &symbol, sizeof symbol)) break;
      if (pread(copy, name, sizeof name - 1,
                static_cast<off_t>(strings.sh_offset + symbol.st_name)) <= 0)
        continue;
      if (std::strcmp(name, "__cxa_thread_atexit") == 0) thread_exit = true;
      if (ELF64_ST_BIND(symbol.st_info) == STB_GNU_UNIQUE && symbol.st_shndx != SHN_UNDEF)
        unique = name;
    }
  }
  if (!unique.empty())
    return "it exports the unique symbol " + unique + "; build it with stockade_add_plugin()";
  if (thread_exit)
    return "it has a thread_local object with a destructor, which lives as long as its thread";
  return "another library or a system registry still refers to it";
}

// Standard output goes into a file of ours while a library is opened.
class CapturedOutput {
 public:
  CapturedOutput() : file_(memfd_create("stdout", MFD_CLOEXEC)) {
    std::fflush(stdout);
    if (file_) saved_ = Fd(fcntl(1, F_DUPFD_CLOEXEC, 3));
    if (saved_) dup2(file_.get(), 1);
  }
  ~CapturedOutput() { end(); }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  std::string end() {
    if (!saved_) return {};
    std::fflush(stdout);
    dup2(saved_.get(), 1);
    saved_.reset();
    char text[200];
    const ssize_t n = pread(file_.get(), text, sizeof text, 0);
    return {text, static_cast<std::size_t>(n < 0 ? 0 : n)};
  }

 private:
  Fd file_;
  Fd saved_;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// glibc lets no exception out of dlopen: one that a static constructor throws ends in
// std::terminate, with the linker on the stack. This handler goes back over it. The linker's lock
// then stays with this thread, which alone opens plugins, and the half-constructed library stays
// mapped.
struct Opening {
  std::jmp_buf back;
  std::string thrown;
};
Opening* opening = nullptr;

[[noreturn]] void leave_constructor() {
  opening->thrown = describe(std::current_exception());
  std::longjmp(opening->back, 1);
}

// Null, and what a static constructor threw or what the linker says.
void* open_or_say(Fd& copy, const char* name, std::string& why) {
  Opening here;
  opening = &here;
  const std::terminate_handler before = std::set_terminate(leave_constructor);
  void* volatile handle = nullptr;
  if (setjmp(here.back) == 0) {
    dlerror();
    handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* text = dlerror();
      why = text ? text : "dlopen failed";
    }
  } else {
    abi::__cxa_end_catch();
    copy.release();  // the linker knows it by this name for good
    why = "a static constructor of it threw: " + here.thrown;
  }
  std::set_terminate(before);
  opening = nullptr;
  return handle;
}

void* open_library(Fd& copy, const std::string& path) {
  const std::string name = copy_path(copy);
  CapturedOutput captured;
  std::string why;
  void* handle = open_or_say(copy, name.c_str(), why);
  const std::string printed = captured.end();
  if (!handle) throw unusable(path, replaced(why, name, path));
  if (printed.empty()) return handle;
  dlclose(handle);
  throw unusable(path, "a static constructor of it writes to standard output (\"" +
                           printed.substr(0, printed.find('\n')) +
                           "\"), which belongs to the host; log through the context");
}

// Owns the mapping; its copy's descriptor keeps the name taken.
std::shared_ptr<const void> own(Loop& loop, void* handle, Fd copy,
                                const std::shared_ptr<LibraryStatus>& status) {
  auto fd = std::make_shared<Fd>(std::move(copy));
  std::shared_ptr<const void> code(
      handle, [&loop, fd, status = std::shared_ptr<LibraryStatus>(status)](void* library) mutable {
        // Moved out: the status refers back to what holds this function.
        loop.post([library, fd = std::move(fd), status = std::move(status)] {
          dlclose(library);
          const bool pinned = in_maps(fd->get());
          status->state = pinned ? LibraryStatus::State::pinned : LibraryStatus::State::unmapped;
          if (pinned) status->pin = pin_of(fd->get());
          // A pinned copy keeps its name: the linker still knows it by that.
          if (pinned) fd->release();
        });
      });
  status->code = code;
  return code;
}

void check_descriptor(const PluginDescriptor* descriptor, const std::string& path) {
  if (!descriptor || descriptor->magic != kPluginMagic)
    throw unusable(path, "its descriptor is not one of stockade's");
  if (descriptor->abi != kPluginAbi)
    throw unusable(path, "it was built for plugin ABI " + std::to_string(descriptor->abi) +
                             ", this host has " + std::to_string(kPluginAbi) + "; rebuild it");
  if (std::strcmp(descriptor->fingerprint, kPluginFingerprint) != 0)
    throw unusable(path, std::string("it was built with [") + descriptor->fingerprint +
                             "], this host with [" + kPluginFingerprint + "]; rebuild it");
}

}  // namespace

void check_library_file(const std::string& path) {
  check_elf(open_file(path).get(), path);
}

std::string LibraryStatus::explain() const {
  switch (state) {
    case State::unmapped:
      return file + " is unmapped";
    case State::pinned:
      return file + " is still mapped: " + pin;
    case State::mapped:
      break;
  }
  return file + " is still mapped: " + std::to_string(code.use_count()) +
         " references to its code remain, of calls in flight or of services that are held";
}

PluginDefinition open_plugin(Loop& loop, const std::string& path) {
  Fd copy = private_copy(path);
  check_elf(copy.get(), path);
  auto status = std::make_shared<LibraryStatus>();
  status->file = path;
  void* handle = open_library(copy, path);
  auto code = own(loop, handle, std::move(copy), status);

  auto* entry = reinterpret_cast<const PluginDescriptor* (*)()>(dlsym(handle, "stockade_plugin"));
  if (!entry) throw unusable(path, "it has no symbol stockade_plugin; see STOCKADE_PLUGIN");
  PluginDefinition definition;
  definition.code = std::move(code);
  definition.library = std::move(status);
  std::string failure;
  try {
    const PluginDescriptor* descriptor = entry();
    check_descriptor(descriptor, path);
    descriptor->define(definition);
    return definition;
  } catch (const Error&) {
    throw;
  } catch (...) {
    failure = describe(std::current_exception());  // while its code is mapped
  }
  throw unusable(path, "describing itself, it threw: " + failure);
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
