// SPDX-License-Identifier: MIT
// Many calls, loud commands, disks that hang: what one call does to another and to the host.
#include <signal.h>
#include <unistd.h>
#include <uv.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "tests/bash-sandbox/rig.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/children.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/program.hpp"
#include "tests/support/scratch.hpp"

using namespace stockade;
using namespace std::chrono_literals;
using stockade::test::kDanger;
using stockade::test::Rig;
using stockade::test::Scratch;
using stockade::test::store_value;
using stockade::test::thrown_by;
using stockade::test::wait_until;
using stockade::test::write_file;

namespace {

// Calls side by side, each with a result of its own.
class Calls {
 public:
  explicit Calls(Rig& rig) : rig_(rig), scope_(rig.loop, [](std::exception_ptr) {}) {}
  std::size_t add(const std::string& command, const std::string& session = "",
                  AbortSignal abort = {}) {
    BashRequest request{.command = command};
    request.policy = kDanger;
    request.policy->session_id = session;
    results_.push_back(std::make_unique<std::optional<BashResult>>());
    scope_.start(store_value(rig_.shell->run(rig_.shell->resolve(request), abort, nullptr),
                             results_.back().get()));
    return results_.size() - 1;
  }
  bool done(std::size_t i) const { return results_[i]->has_value(); }
  const BashResult& operator[](std::size_t i) const { return results_[i]->value(); }
  bool all() {
    return wait_until(rig_.loop, [&] {
      for (const auto& result : results_)
        if (!*result) return false;
      return true;
    });
  }

 private:
  Rig& rig_;
  std::vector<std::unique_ptr<std::optional<BashResult>>> results_;
  TaskScope scope_;
};

std::size_t descriptors() {
  return static_cast<std::size_t>(std::distance(
      std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator{}));
}

// Every thread of libuv's pool, held up as by a disk that does not answer, until it is let go.
class HungDisk {
 public:
  explicit HungDisk(Loop& loop) : loop_(loop) {
    for (auto& job : jobs_) {
      job.data = this;
      REQUIRE(uv_queue_work(
                  loop.uv(), &job,
                  [](uv_work_t* work) {
                    auto* self = static_cast<HungDisk*>(work->data);
                    ++self->held_;
                    while (!self->go_) std::this_thread::sleep_for(5ms);
                  },
                  [](uv_work_t*, int) {}) == 0);
    }
    while (held_ < 4) std::this_thread::sleep_for(1ms);
  }
  ~HungDisk() {
    go_ = true;
    loop_.drain();
  }

 private:
  Loop& loop_;
  uv_work_t jobs_[4]{};
  std::atomic<int> held_{0};
  std::atomic<bool> go_{false};
};

}  // namespace

TEST_CASE("load: more calls than may run wait and say for how long") {
  Rig rig({.cwd = "", .max_calls = 2});
  Calls calls(rig);
  Scratch scratch;
  const std::string hold = "while [ ! -e " + (scratch / "go") + " ]; do sleep 0.02; done";
  for (int i = 0; i < 4; ++i) calls.add(hold + "; echo " + std::to_string(i));
  REQUIRE(wait_until(rig.loop, [&] { return rig.shell->load().queued == 2; }));
  CHECK(rig.shell->load().running == 2);
  CHECK(rig.shell->load().limit == 2);
  stockade::test::run_for(rig.loop, 100ms);
  write_file(scratch / "go", "");
  REQUIRE(calls.all());
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(calls[i].out.bytes == std::to_string(i) + "\n");
    if (i < 2)
      CHECK(calls[i].queued < 100ms);
    else
      CHECK(calls[i].queued >= 100ms);
  }
  CHECK(rig.shell->load().running == 0);
}

TEST_CASE("load: a call that waits is aborted without having been started") {
  Rig rig({.cwd = "", .max_calls = 1});
  Scratch scratch;
  Calls calls(rig);
  AbortController first;
  AbortController second;
  auto running = calls.add("sleep 60", "", first.signal());
  auto waiting = calls.add("touch " + (scratch / "ran"), "", second.signal());
  REQUIRE(wait_until(rig.loop, [&] { return rig.shell->load().queued == 1; }));
  second.abort();
  REQUIRE(wait_until(rig.loop, [&] { return calls.done(waiting); }));
  CHECK(calls[waiting].outcome == BashOutcome::aborted);
  CHECK(calls[waiting].sandbox.ran == false);
  CHECK_FALSE(calls.done(running));
  first.abort();
  REQUIRE(calls.all());
  CHECK_FALSE(stockade::test::exists(scratch / "ran"));
}

TEST_CASE("load: a session with many calls does not hold up another") {
  Rig rig({.cwd = "", .max_calls = 2});
  Calls calls(rig);
  for (int i = 0; i < 30; ++i) calls.add("sleep 0.1", "greedy");
  REQUIRE(wait_until(rig.loop, [&] { return rig.shell->load().queued == 28; }));
  auto modest = calls.add("echo hi", "modest");
  REQUIRE(wait_until(rig.loop, [&] { return calls.done(modest); }));
  CHECK(rig.shell->load().queued >= 20);
  REQUIRE(calls.all());
}

TEST_CASE("load: background commands take no place and are counted") {
  Rig rig({.cwd = "", .max_calls = 1});
  auto one = rig.start("sleep 60");
  auto two = rig.start("sleep 60");
  CHECK(rig.shell->load().background == 2);
  CHECK(rig.bash("echo hi").out.bytes == "hi\n");
  one->kill();
  rig.settle(*one);
  CHECK(rig.shell->load().background == 1);
  two.reset();
  CHECK(rig.shell->load().background == 0);
}

TEST_CASE("load: a handle that has settled keeps no descriptor") {
  Rig rig({.cwd = "", .max_output_bytes = 1000});
  rig.bash("true");
  const auto before = descriptors();
  std::vector<std::shared_ptr<BashProcess>> kept;
  for (int i = 0; i < 20; ++i) kept.push_back(rig.start("seq 1 1000; exit " + std::to_string(i)));
  for (std::size_t i = 0; i < kept.size(); ++i)
    CHECK(rig.settle(*kept[i]).exit_code == static_cast<int>(i));
  rig.loop.drain();
  CHECK(descriptors() == before + 1);  // that of the spill directory
  CHECK(kept[3]->read().output.ends_with("1000\n"));
  CHECK(kept[3]->status() == BashProcessStatus::completed);
}

TEST_CASE("load: a disk that hangs holds up no result beyond the limit") {
  for (const char* command :
       {"seq 1 20000; echo END", "head -c 30000000 /dev/zero | tr '\\0' x; echo END"}) {
    CAPTURE(command);
    Rig rig({.cwd = "", .timeout_ms = 3000, .max_output_bytes = 1000, .grace_ms = 500});
    rig.bash("true");
    HungDisk disk(rig.loop);
    auto result = rig.bash(command);
    CHECK(result.duration < 15s);
    REQUIRE(result.out.spill_note);
    CHECK_THAT(*result.out.spill_note, ContainsSubstring("the disk did not take the rest in time"));
    CHECK(result.out.truncated);
    if (result.outcome == BashOutcome::ok) CHECK(result.out.bytes.ends_with("END\n"));
    // The other streams and calls are not concerned.
    CHECK(rig.bash("echo next").out.bytes == "next\n");
  }
}

TEST_CASE("load: a disk that is only slow loses nothing") {
  Rig rig({.cwd = "", .max_output_bytes = 1000, .drain_ms = 50});
  rig.bash("true");
  std::optional<HungDisk> disk;
  disk.emplace(rig.loop);
  auto process = rig.start("seq 1 20000");
  // Longer than the drain limit, shorter than that of the disk.
  stockade::test::run_for(rig.loop, 600ms);
  disk.reset();
  auto result = rig.settle(*process);
  CHECK_FALSE(result.out.spill_note);
  CHECK(std::filesystem::file_size(result.out.spill_path.value()) == result.out.total);
}

TEST_CASE("load: a loud command does not starve a quiet one") {
  Rig rig({.cwd = "", .max_spill_bytes = 1000000});
  AbortController stop;
  Calls calls(rig);
  auto loud = calls.add("yes", "", stop.signal());
  stockade::test::run_for(rig.loop, 300ms);
  for (int i = 0; i < 5; ++i) {
    auto quiet = calls.add("echo hi");
    REQUIRE(wait_until(rig.loop, [&] { return calls.done(quiet); }));
    CHECK(calls[quiet].out.bytes == "hi\n");
    CHECK(calls[quiet].duration < 10s);
  }
  stop.abort();
  REQUIRE(calls.all());
  CHECK(calls[loud].out.total > 1000000);
}

TEST_CASE("load: a soak loses nothing, doubles nothing and leaves nothing") {
  Rig rig;
  rig.bash("true");
  const auto before = descriptors();
  std::set<std::string> seen;
  constexpr std::size_t kRounds = 20;
  constexpr std::size_t kAtOnce = 16;
  for (std::size_t round = 0; round < kRounds; ++round) {
    Calls calls(rig);
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const std::string number = std::to_string(round * kAtOnce + i);
      calls.add("echo " + number + (i % 4 == 0 ? "; sleep 100 & exit 3" : "; exit 3"));
    }
    REQUIRE(calls.all());
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      CHECK(calls[i].exit_code == 3);
      CHECK(seen.insert(calls[i].out.bytes).second);
    }
  }
  CHECK(seen.size() == kRounds * kAtOnce);
  rig.loop.drain();
  CHECK(descriptors() == before);
  // No zombie and no child is left.
  CHECK(stockade::test::children() == "");
}
