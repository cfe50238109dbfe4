// SPDX-License-Identifier: MIT
#include "framework/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <string>

#include "framework/loop.hpp"
#include "tests/framework/harness.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch.hpp"

namespace stockade::test {
namespace {

using std::chrono::milliseconds;

struct Recorder : ProcessObserver {
  void on_data(Stream stream, std::span<const char> bytes) override {
    text[index(stream)].append(bytes.data(), bytes.size());
    if (after_data) after_data(stream);
  }
  void on_end(Stream stream) override {
    ++ends[index(stream)];
    if (after_end) after_end(stream);
  }
  void on_exit(ExitStatus s) override {
    ++exits;
    status = s;
    if (after_exit) after_exit();
  }
  void on_failed(SpawnError why) override {
    ++failures;
    error = std::move(why);
  }

  static std::size_t index(Stream stream) { return static_cast<std::size_t>(stream); }
  const std::string& out() const { return text[0]; }
  const std::string& err() const { return text[1]; }
  bool complete(bool with_status = false) const {
    return exits > 0 && ends[0] > 0 && ends[1] > 0 && (!with_status || ends[2] > 0);
  }

  std::string text[3];
  int ends[3]{};
  int exits = 0;
  int failures = 0;
  ExitStatus status;
  std::optional<SpawnError> error;
  std::function<void(Stream)> after_data;
  std::function<void(Stream)> after_end;
  std::function<void()> after_exit;
};

SpawnRequest shell(const std::string& script) {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", script};
  request.environment = {"PATH=/usr/bin:/bin"};
  request.working_directory = "/";
  return request;
}

std::unique_ptr<Process> spawn(Loop& loop, const SpawnRequest& request, Recorder& recorder) {
  auto spawned = Process::spawn(loop, request, recorder);
  if (auto* error = std::get_if<SpawnError>(&spawned)) throw std::runtime_error(error->message());
  return std::move(std::get<std::unique_ptr<Process>>(spawned));
}

void run_to_end(const SpawnRequest& request, Recorder& recorder) {
  Loop loop;
  auto process = spawn(loop, request, recorder);
  run_until(loop, [&] { return recorder.complete(request.status_channel); });
}

std::string output_of(const SpawnRequest& request) {
  Recorder recorder;
  run_to_end(request, recorder);
  INFO(recorder.err());
  CHECK(recorder.status.code == 0);
  return recorder.out();
}

SpawnError spawn_error(const SpawnRequest& request) {
  Loop loop;
  Recorder recorder;
  auto process = spawn(loop, request, recorder);
  run_until(loop, [&] { return recorder.failures > 0; });
  process.reset();
  loop.drain();
  CHECK(recorder.failures == 1);
  CHECK(recorder.exits == 0);
  return *recorder.error;
}

bool gone(pid_t pid) {
  return kill(pid, 0) == -1 && errno == ESRCH;
}

// Without waiting for whoever has to reap it.
bool dead(pid_t pid) {
  auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  auto paren = stat.rfind(')');
  return gone(pid) || paren == std::string::npos || stat.substr(paren, 3) == ") Z";
}

TEST_CASE("process: reports both streams and the exit code") {
  Recorder recorder;
  run_to_end(shell("echo out; echo err >&2; exit 3"), recorder);
  CHECK(recorder.out() == "out\n");
  CHECK(recorder.err() == "err\n");
  CHECK(recorder.status.code == 3);
  CHECK_FALSE(recorder.status.signal.has_value());
}

TEST_CASE("process: reports a signal of the child itself") {
  Recorder recorder;
  run_to_end(shell("kill -TERM $$"), recorder);
  CHECK(recorder.status.signal == SIGTERM);
  CHECK_FALSE(recorder.status.code.has_value());
}

TEST_CASE("process: an exit code above 128 is no signal") {
  Recorder recorder;
  run_to_end(shell("exit 143"), recorder);
  CHECK(recorder.status.code == 143);
  CHECK_FALSE(recorder.status.signal.has_value());
}

TEST_CASE("process: each stream and the exit are reported once") {
  Recorder recorder;
  Loop loop;
  {
    auto process = spawn(loop, shell("echo x"), recorder);
    run_until(loop, [&] { return recorder.complete(); });
    process->close_streams();
    process->reap();
    loop.drain();
  }
  loop.drain();
  CHECK(recorder.exits == 1);
  CHECK(recorder.ends[0] == 1);
  CHECK(recorder.ends[1] == 1);
  CHECK(recorder.ends[2] == 0);
}

TEST_CASE("process: callbacks never run inside spawn") {
  Recorder recorder;
  Loop loop;
  auto process = spawn(loop, shell("echo x"), recorder);
  usleep(20000);  // the child has long ended
  CHECK(recorder.exits == 0);
  CHECK(recorder.out().empty());
  CHECK(recorder.ends[0] == 0);
  run_until(loop, [&] { return recorder.complete(); });
  CHECK(recorder.out() == "x\n");
}

TEST_CASE("process: the streams can be opened by name") {
  Recorder recorder;
  run_to_end(shell("echo x > /dev/stdout; echo y > /dev/stderr; echo z > /proc/self/fd/1"),
             recorder);
  CHECK(recorder.out() == "x\nz\n");
  CHECK(recorder.err() == "y\n");
  CHECK(recorder.status.code == 0);
}

TEST_CASE("process: standard input without bytes is the null device") {
  CHECK(output_of(shell("test -c /proc/self/fd/0 && readlink /proc/$$/fd/0; wc -c")) ==
        "/dev/null\n0\n");
}

TEST_CASE("process: input bytes arrive and then their end") {
  auto request = shell("cat; echo end");
  request.input = "some\nlines";
  CHECK(output_of(request) == "some\nlinesend\n");
  request.input = "";
  CHECK(output_of(request) == "end\n");
}

TEST_CASE("process: much input goes through whole") {
  auto request = shell("wc -c");
  request.input = std::string(1 << 20, 'x');
  CHECK(output_of(request) == "1048576\n");
}

TEST_CASE("process: a child that does not read its input is no failure") {
  auto request = shell("exit 7");
  request.input = std::string(1 << 20, 'x');
  Recorder recorder;
  run_to_end(request, recorder);
  CHECK(recorder.status.code == 7);
}

TEST_CASE("process: the status channel is descriptor 3") {
  auto request = shell("echo status >&3; echo out");
  request.status_channel = true;
  Recorder recorder;
  run_to_end(request, recorder);
  CHECK(recorder.text[2] == "status\n");
  CHECK(recorder.out() == "out\n");
  CHECK(recorder.ends[2] == 1);
}

TEST_CASE("process: inherits no descriptor but its own") {
  std::vector<Fd> leaks;
  for (int i = 0; i < 5; ++i) leaks.emplace_back(open("/dev/null", O_RDONLY));
  leaks.emplace_back(fcntl(leaks[0].get(), F_DUPFD, 900));
  REQUIRE(leaks.back().get() >= 900);
  REQUIRE(fcntl(leaks.back().get(), F_GETFD) == 0);
  // The shell's own builtins open nothing.
  auto request = shell(
      "n=0; while [ $n -lt 1024 ]; do [ -e /proc/$$/fd/$n ] && echo $n; n=$((n+1)); done; exit 0");
  CHECK(output_of(request) == "0\n1\n2\n");
  request.status_channel = true;
  request.input = "";
  CHECK(output_of(request) == "0\n1\n2\n3\n");
}

TEST_CASE("process: works where the host's own descriptors are taken or free") {
  // With 3 free the pipes would land on the numbers that the child gets.
  Fd three(dup(2));
  auto request = shell("cat; echo err >&2; echo status >&3");
  request.status_channel = true;
  request.input = "in\n";
  for (int round = 0; round < 2; ++round) {
    Recorder recorder;
    run_to_end(request, recorder);
    CHECK(recorder.out() == "in\n");
    CHECK(recorder.err() == "err\n");
    CHECK(recorder.text[2] == "status\n");
    three.reset();
  }
}

TEST_CASE("process: leads a session of its own") {
  Recorder recorder;
  Loop loop;
  auto process =
      spawn(loop, shell("read -r line < /proc/self/stat; set -- $line; echo $1 $5 $6"), recorder);
  auto pid = std::to_string(process->pid());
  run_until(loop, [&] { return recorder.complete(); });
  CHECK(recorder.out() == pid + " " + pid + " " + pid + "\n");
}

TEST_CASE("process: has default signals whatever the host blocks or ignores") {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  auto handler = signal(SIGUSR2, SIG_IGN);
  SpawnRequest request = shell("");
  request.argv = {"/bin/grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"};
  auto output = output_of(request);
  signal(SIGUSR2, handler);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  INFO(output);
  REQUIRE(count_of(output, "\t") == 2);
  auto mask = [&output](const std::string& name) {
    return std::stoull(output.substr(output.find(name) + name.size()), nullptr, 16);
  };
  // glibc's posix_spawn ignores its two internal signals, 32 and 33, for good.
  constexpr unsigned long long kInternal = 0x180000000;
  CHECK(mask("SigBlk:") == 0);
  CHECK((mask("SigIgn:") & ~kInternal) == 0);
}

TEST_CASE("process: a broken pipe ends the child and not the host") {
  CHECK(output_of(shell("yes | head -n 1")) == "y\n");
  Recorder recorder;
  Loop loop;
  auto process = spawn(loop, shell("exec yes"), recorder);
  run_until(loop, [&] { return !recorder.out().empty(); });
  process->close_streams();
  run_until(loop, [&] { return recorder.exits > 0; });
  CHECK(recorder.status.signal == SIGPIPE);
}

TEST_CASE("process: has exactly the given arguments and environment") {
  SpawnRequest request;
  request.argv = {"/usr/bin/env"};
  request.environment = {"A=1", "B=two words"};
  request.working_directory = "/";
  CHECK(output_of(request) == "A=1\nB=two words\n");
  request.argv = {"/usr/bin/printf", "<%s>", "", "a b", "*", "$HOME"};
  CHECK(output_of(request) == "<><a b><*><$HOME>");
}

TEST_CASE("process: begins in its working directory") {
  Scratch scratch;
  auto request = shell("pwd -P");
  request.working_directory = scratch.path();
  CHECK(output_of(request) == scratch.path() + "\n");
}

TEST_CASE("process: a program without a slash is looked up") {
  auto request = shell("echo found");
  request.argv[0] = "sh";
  CHECK(output_of(request) == "found\n");
}

TEST_CASE("process: a missing working directory is blamed and named") {
  Scratch scratch;
  auto request = shell("exit 0");
  request.working_directory = scratch / "missing";
  auto error = spawn_error(request);
  CHECK(error.step == SpawnStep::working_directory);
  CHECK(error.error == ENOENT);
  CHECK(error.operand == request.working_directory);
  CHECK(error.message() == "cannot enter the working directory " + request.working_directory +
                               ": ENOENT (No such file or directory)");
}

TEST_CASE("process: a file is no working directory") {
  Scratch scratch;
  write_file(scratch / "file", "");
  auto request = shell("exit 0");
  request.working_directory = scratch / "file";
  auto error = spawn_error(request);
  CHECK(error.step == SpawnStep::working_directory);
  CHECK(error.error == ENOTDIR);
}

TEST_CASE("process: a program that cannot be executed is blamed and named") {
  Scratch scratch;
  write_file(scratch / "plain", "#!/bin/sh\n", 0644);
  write_file(scratch / "no-interpreter", "#!/no/such/interpreter\n", 0755);
  write_file(scratch / "no-format", "text\n", 0755);
  const std::pair<std::string, int> cases[] = {{scratch / "missing", ENOENT},
                                               {scratch / "plain", EACCES},
                                               {scratch / "no-interpreter", ENOENT},
                                               {scratch / "no-format", ENOEXEC},
                                               {scratch.path(), EACCES},
                                               {"no-such-program-anywhere", ENOENT}};
  for (const auto& [program, expected] : cases) {
    INFO(program);
    auto request = shell("");
    request.argv = {program};
    auto error = spawn_error(request);
    CHECK(error.step == SpawnStep::program);
    CHECK(error.error == expected);
    CHECK(error.operand == program);
    CHECK_THAT(error.message(), ContainsSubstring("cannot execute " + program));
  }
}

TEST_CASE("process: a command line that is too long is a matter of resources") {
  auto request = shell("exit 0");
  request.argv.push_back(std::string(4 << 20, 'x'));
  auto error = spawn_error(request);
  CHECK(error.step == SpawnStep::resources);
  CHECK(error.error == E2BIG);
  CHECK_THAT(error.message(), ContainsSubstring("too long"));
}

TEST_CASE("process: a lack of descriptors is a matter of resources") {
  Loop loop;
  Recorder recorder;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  Fd next(open("/dev/null", O_RDONLY | O_CLOEXEC));
  none.rlim_cur = static_cast<rlim_t>(next.get()) + 2;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  auto spawned = Process::spawn(loop, shell("exit 0"), recorder);
  setrlimit(RLIMIT_NOFILE, &before);
  auto* error = std::get_if<SpawnError>(&spawned);
  REQUIRE(error != nullptr);
  CHECK(error->step == SpawnStep::resources);
  CHECK(error->error == EMFILE);
}

TEST_CASE("process: a failed spawn leaves no descriptor open") {
  Loop loop;
  Recorder recorder;
  auto request = shell("");
  request.argv = {"/no/such/program"};
  request.status_channel = true;
  request.input = "x";
  Fd before(open("/dev/null", O_RDONLY | O_CLOEXEC));
  int number = before.get();
  before.reset();
  for (int i = 0; i < 10; ++i) {
    auto process = spawn(loop, request, recorder);
    run_until(loop, [&] { return recorder.failures > i; });
    process.reset();
    loop.drain();
  }
  Fd after(open("/dev/null", O_RDONLY | O_CLOEXEC));
  CHECK(after.get() == number);
}

TEST_CASE("process: an ended one leaves no descriptor open") {
  Loop loop;
  auto request = shell("cat >&3");
  request.status_channel = true;
  request.input = "x";
  int numbers[2];
  for (int& number : numbers) {
    Recorder recorder;
    {
      auto process = spawn(loop, request, recorder);
      run_until(loop, [&] { return recorder.complete(true); });
    }
    loop.drain();
    Fd probe(open("/dev/null", O_RDONLY | O_CLOEXEC));
    number = probe.get();
  }
  CHECK(numbers[0] == numbers[1]);
}

TEST_CASE("process: the zombie guards the id until it is reaped") {
  Loop loop;
  Recorder recorder;
  auto process = spawn(loop, shell("exit 0"), recorder);
  pid_t pid = process->pid();
  process->reap();  // too early: nothing to take away yet
  run_until(loop, [&] { return recorder.complete(); });
  CHECK_FALSE(gone(pid));
  process->signal_group(SIGTERM);
  process->reap();
  CHECK(gone(pid));
  process->signal_group(SIGTERM);
}

TEST_CASE("process: a signal reaches the whole group") {
  Loop loop;
  Recorder recorder;
  auto process = spawn(loop, shell("sleep 100 & echo $!; wait"), recorder);
  run_until(loop, [&] { return recorder.out().ends_with("\n"); });
  pid_t grandchild = std::stoi(recorder.out());
  CHECK_FALSE(dead(grandchild));
  process->signal_group(SIGTERM);
  run_until(loop, [&] { return recorder.complete(); });
  CHECK(recorder.status.signal == SIGTERM);
  CHECK(dead(grandchild));
}

TEST_CASE("process: a grandchild that holds the pipe delays the end but not the exit") {
  Loop loop;
  Recorder recorder;
  auto process = spawn(loop, shell("sleep 100 & exit 4"), recorder);
  run_until(loop, [&] { return recorder.exits > 0; });
  run_for(loop, milliseconds(10));
  CHECK(recorder.status.code == 4);
  CHECK(recorder.ends[0] == 0);
  process->close_streams();
  CHECK(recorder.ends[0] == 1);
  CHECK(recorder.ends[1] == 1);
  process->signal_group(SIGKILL);
}

TEST_CASE("process: dropping it kills and reaps the group") {
  Loop loop;
  Recorder recorder;
  auto process = spawn(loop, shell("trap '' TERM INT HUP; sleep 100 & echo $!; wait"), recorder);
  pid_t pid = process->pid();
  run_until(loop, [&] { return recorder.out().ends_with("\n"); });
  pid_t grandchild = std::stoi(recorder.out());
  process.reset();
  int ends = recorder.ends[0];
  loop.drain();
  CHECK(gone(pid));
  CHECK(recorder.exits == 0);
  CHECK(recorder.ends[0] == ends);
  for (int i = 0; i < 100 && !dead(grandchild); ++i) usleep(1000);
  CHECK(dead(grandchild));
}

TEST_CASE("process: dropping it before the first turn leaves nothing") {
  Loop loop;
  Recorder recorder;
  auto request = shell("sleep 100");
  request.status_channel = true;
  request.input = std::string(1 << 20, 'x');
  auto process = spawn(loop, request, recorder);
  pid_t pid = process->pid();
  process.reset();
  loop.drain();
  CHECK(gone(pid));
  CHECK(recorder.exits == 0);
}

TEST_CASE("process: dropping it after the exit reaps at once") {
  Loop loop;
  Recorder recorder;
  auto process = spawn(loop, shell("exit 0"), recorder);
  pid_t pid = process->pid();
  run_until(loop, [&] { return recorder.complete(); });
  process.reset();
  CHECK(gone(pid));
}

TEST_CASE("process: can be dropped inside each of its callbacks") {
  enum class Moment { data, end, exit };
  auto moment = GENERATE(Moment::data, Moment::end, Moment::exit);
  Loop loop;
  Recorder recorder;
  auto request = shell(moment == Moment::data ? "echo x; exec sleep 100" : "echo x");
  request.input = "unread";
  auto process = spawn(loop, request, recorder);
  pid_t pid = process->pid();
  if (moment == Moment::data) recorder.after_data = [&](Stream) { process.reset(); };
  if (moment == Moment::end) recorder.after_end = [&](Stream) { process.reset(); };
  if (moment == Moment::exit) recorder.after_exit = [&] { process.reset(); };
  run_until(loop, [&] { return process == nullptr; });
  loop.drain();
  CHECK(gone(pid));
  if (moment == Moment::data) CHECK(recorder.exits == 0);
  CHECK(recorder.exits <= 1);
}

TEST_CASE("process: nothing is reported after the drop") {
  Loop loop;
  Recorder recorder;
  auto process = spawn(loop, shell("echo x; echo y >&2; exec sleep 100"), recorder);
  int calls_after = 0;
  bool dropped = false;
  recorder.after_data = [&](Stream) {
    if (dropped) ++calls_after;
    dropped = true;
    process.reset();
  };
  recorder.after_end = [&](Stream) { ++calls_after; };
  recorder.after_exit = [&] { ++calls_after; };
  loop.drain();
  CHECK(dropped);
  CHECK(calls_after == 0);
}

TEST_CASE("process: a paused stream holds the child back") {
  constexpr std::size_t kSize = 1 << 20;
  Loop loop;
  Recorder recorder;
  auto process = spawn(loop, shell("head -c 1048576 /dev/zero; echo done >&2"), recorder);
  recorder.after_data = [&](Stream stream) {
    if (stream == Stream::output) process->pause(Stream::output);
  };
  run_until(loop, [&] { return !recorder.out().empty(); });
  auto held = recorder.out().size();
  run_for(loop, milliseconds(50));
  CHECK(recorder.out().size() == held);
  CHECK(held < kSize);
  CHECK(recorder.exits == 0);
  CHECK(recorder.err().empty());
  recorder.after_data = nullptr;
  process->resume(Stream::output);
  run_until(loop, [&] { return recorder.complete(); });
  CHECK(recorder.out().size() == kSize);
  CHECK(recorder.status.code == 0);
}

TEST_CASE("process: loud streams that rest, pause and stop lose nothing") {
  // Loud at first, then a line at a time, then loud again.
  const std::string script =
      "seq 1 400000; seq 1 300000 >&2; for i in 1 2 3 4 5; do echo $i; done; seq 1 400000";
  const std::string expected = output_of(shell(script + " 2>/dev/null"));
  REQUIRE(expected.size() > 5'000'000);
  Loop loop;
  Recorder recorder;
  auto process = spawn(loop, shell(script), recorder);
  Timer timer(loop);
  int pauses = 0;
  std::size_t chunks = 0;
  recorder.after_data = [&](Stream stream) {
    if (stream != Stream::output || ++chunks % 16 != 0) return;
    process->pause(Stream::output);
    ++pauses;
    timer.start(milliseconds(1), [&] { process->resume(Stream::output); });
  };
  run_until(loop, [&] { return recorder.complete(); });
  CHECK(pauses > 0);
  CHECK(recorder.out().size() == expected.size());
  CHECK((recorder.out() == expected));
  CHECK(recorder.err().size() == 1'988'895);
}

TEST_CASE("process: one that is dropped while a loud stream rests leaves nothing") {
  for (std::size_t after : {200'000U, 1'000'000U, 3'000'000U}) {
    Loop loop;
    Recorder recorder;
    auto process = spawn(loop, shell("yes & yes >&2"), recorder);
    const pid_t pid = process->pid();
    run_until(loop, [&] { return recorder.out().size() > after; });
    process.reset();
    loop.drain();
    CHECK(gone(pid));
  }
}

TEST_CASE("process: pausing one stream does not stop the other") {
  Loop loop;
  Recorder recorder;
  auto process = spawn(loop, shell("echo out; echo err >&2"), recorder);
  process->pause(Stream::output);
  process->pause(Stream::output);
  process->pause(Stream::status);
  run_until(loop, [&] { return recorder.ends[1] > 0 && recorder.exits > 0; });
  CHECK(recorder.err() == "err\n");
  CHECK(recorder.out().empty());
  CHECK(recorder.ends[0] == 0);
  process->resume(Stream::output);
  process->resume(Stream::output);
  process->resume(Stream::status);
  run_until(loop, [&] { return recorder.complete(); });
  CHECK(recorder.out() == "out\n");
}

TEST_CASE("process: no callback runs inside spawn") {
  Loop loop;
  Recorder recorder;
  auto process = spawn(loop, shell("echo x; exit 1"), recorder);
  usleep(100000);
  CHECK(recorder.out() == "");
  CHECK(recorder.exits == 0);
  run_until(loop, [&] { return recorder.complete(); });
}

TEST_CASE("process: one that is dropped while it starts leaves nothing") {
  Loop loop;
  Scratch scratch;
  const std::string pids = scratch.path() + "/pids";
  for (int i = 0; i < 20; ++i) {
    Recorder recorder;
    auto process = spawn(loop, shell("echo $$ >> " + pids + "; exec sleep 1000"), recorder);
    const pid_t pid = process->pid();
    usleep(static_cast<useconds_t>(i * 200));  // before, while and after it executes
    process.reset();
    loop.drain();
    CHECK(recorder.exits == 0);
    CHECK(gone(pid));
  }
}

TEST_CASE("process: one that ends by a signal before it executes is reported as that") {
  Loop loop;
  for (int i = 0; i < 20; ++i) {
    Recorder recorder;
    auto process = spawn(loop, shell("exec sleep 1000"), recorder);
    process->signal_group(SIGKILL);
    run_until(loop, [&] { return recorder.complete(); });
    CHECK(recorder.status.signal == SIGKILL);
    CHECK(recorder.failures == 0);
  }
}

TEST_CASE("process: a name is not looked for in relative directories of PATH") {
  Scratch scratch;
  const char* before = getenv("PATH");
  const std::string path = before ? before : "";
  std::ofstream(scratch / "planted") << "#!/bin/sh\necho planted\n";
  REQUIRE(chmod((scratch / "planted").c_str(), 0755) == 0);
  SpawnRequest request;
  request.argv = {"planted"};
  request.working_directory = scratch.path();
  for (const char* relative : {"", ".", ":", "::/bin", "bin:.", "/bin:"}) {
    CAPTURE(relative);
    setenv("PATH", relative, 1);
    auto error = spawn_error(request);
    CHECK(error.step == SpawnStep::program);
    CHECK(error.error == ENOENT);
  }
  setenv("PATH", (std::string(scratch.path()) + ":/bin").c_str(), 1);
  CHECK(output_of(request) == "planted\n");
  setenv("PATH", path.c_str(), 1);
}

TEST_CASE("process: many run side by side") {
  Loop loop;
  std::vector<std::unique_ptr<Recorder>> recorders;
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 20; ++i) {
    recorders.push_back(std::make_unique<Recorder>());
    processes.push_back(spawn(loop,
                              shell("echo " + std::to_string(i) + "; exit " + std::to_string(i)),
                              *recorders.back()));
  }
  run_until(loop, [&] {
    for (const auto& recorder : recorders)
      if (!recorder->complete()) return false;
    return true;
  });
  for (int i = 0; i < 20; ++i) {
    CHECK(recorders[static_cast<std::size_t>(i)]->out() == std::to_string(i) + "\n");
    CHECK(recorders[static_cast<std::size_t>(i)]->status.code == i);
  }
}

}  // namespace
}  // namespace stockade::test
