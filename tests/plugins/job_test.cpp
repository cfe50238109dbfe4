// SPDX-License-Identifier: MIT
#include "plugins/jobs/job_registry.hpp"
#include "plugins/jobs/job_tools.hpp"
#include "tests/support/await.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/errors.hpp"

using namespace stockade;
using namespace std::chrono_literals;
using nlohmann::json;
using stockade::test::await_task;
using stockade::test::run_for;
using stockade::test::thrown_by;

namespace {

class FakeWork final : public JobWork {
 public:
  explicit FakeWork(Loop& loop) : done_(loop) {}
  std::string read() override { return std::exchange(next, {}); }
  void cancel(const std::string& reason) override {
    if (cancel_fails) throw Error("X", "cannot");
    reasons.push_back(reason);
    if (obeys) done_.settle({JobStatus::killed, "signal: SIGTERM"});
  }
  Completion<JobOutcome> done() const override { return done_; }
  void end(int code = 0) {
    done_.settle({JobStatus::completed, "exit code: " + std::to_string(code)});
  }
  std::string next;
  std::vector<std::string> reasons;
  bool cancel_fails = false;
  bool obeys = false;

 private:
  Completion<JobOutcome> done_;
};

struct Rig {
  std::shared_ptr<FakeWork> start(const std::string& owner = "a",
                                  const std::string& kind = "bash") {
    auto work = std::make_shared<FakeWork>(loop);
    jobs->start(owner, kind, "label", [&] { return work; });
    return work;
  }
  void turn() { run_for(loop, 1ms); }
  ToolResult call(const std::string& tool, json arguments, const std::string& owner = "a") {
    ToolCall made;
    made.arguments = std::move(arguments);
    made.session = std::make_shared<MemorySession>(Session{owner, std::nullopt, {}});
    for (const auto& each : make_job_tools(jobs))
      if (each.name == tool) return await_task(loop, each.tool->call(std::move(made)));
    FAIL("no tool " + tool);
    return {};
  }
  Loop loop;
  std::shared_ptr<JobRegistry> jobs =
      std::make_shared<JobRegistry>(loop, JobLimits{}, Log::standard_error(LogLevel::off));
};

}  // namespace

TEST_CASE("jobs: ids count by kind and a start that failed uses none up") {
  Rig rig;
  CHECK(thrown_by([&] {
          rig.jobs->start("a", "bash", "l",
                          []() -> std::shared_ptr<JobWork> { throw Error("X", "no"); });
        }).code == "X");
  rig.start();
  rig.start();
  rig.start("a", "build");
  std::string ids;
  for (const auto& job : rig.jobs->list("a")) ids += job.id + " ";
  CHECK(ids == "bash-1 bash-2 build-1 ");
}

TEST_CASE("jobs: an owner has so many at once and another is not in its way") {
  Rig rig;
  std::vector<std::shared_ptr<FakeWork>> works;
  for (int i = 0; i < 10; ++i) works.push_back(rig.start());
  bool started = false;
  auto refused = thrown_by([&] {
    rig.jobs->start("a", "bash", "l", [&]() -> std::shared_ptr<JobWork> {
      started = true;
      return nullptr;
    });
  });
  CHECK(refused.code == "JOB_LIMIT");
  CHECK(refused.text ==
        "background job limit reached for this owner (limit: 10); use job_kill to stop an unneeded "
        "job, wait for it to finish, then retry");
  CHECK_FALSE(started);
  rig.start("b");
  rig.start("");
  rig.jobs->kill("a", "bash-1", "enough");  // stopping still counts
  CHECK(thrown_by([&] { rig.start(); }).code == "JOB_LIMIT");
  works[0]->end();
  rig.turn();
  CHECK_NOTHROW(rig.start());
}

TEST_CASE("jobs: those that have ended are forgotten from the oldest on") {
  Rig rig;
  rig.jobs =
      std::make_shared<JobRegistry>(rig.loop, JobLimits{5, 3}, Log::standard_error(LogLevel::off));
  for (int i = 0; i < 20; ++i) {
    rig.start()->end();
    rig.turn();
  }
  rig.start();
  CHECK(rig.jobs->list("a").size() == 4);
  CHECK(rig.jobs->list("a").front().id == "bash-18");
}

TEST_CASE("jobs: a job is seen by its owner and what nobody owns by everybody") {
  Rig rig;
  rig.start("a");
  rig.start("");
  rig.start("b");
  for (const char* id : {"bash-1"}) {
    CHECK(thrown_by([&] { rig.jobs->read("b", id); }).text ==
          "job bash-1 belongs to another session");
    CHECK(thrown_by([&] { rig.jobs->kill("", id, ""); }).code == "JOB_FOREIGN");
    CHECK(thrown_by([&] { await_task(rig.loop, rig.jobs->wait("b", "bash-1", 1ms, {})); }).code ==
          "JOB_FOREIGN");
  }
  CHECK_NOTHROW(rig.jobs->read("a", "bash-2"));
  CHECK_THAT(thrown_by([&] { rig.jobs->read("a", "bash-99"); }).text,
             ContainsSubstring("unknown job bash-99"));
  std::string ids;
  for (const auto& job : rig.jobs->list("b")) ids += job.id + " ";
  CHECK(ids == "bash-2 bash-3 ");
}

TEST_CASE("jobs: a kill forwards its reason and one that fails changes nothing") {
  Rig rig;
  auto work = rig.start();
  work->cancel_fails = true;
  CHECK(thrown_by([&] { rig.jobs->kill("a", "bash-1", "enough"); }).code == "X");
  CHECK(rig.jobs->list("a")[0].status == JobStatus::running);
  work->cancel_fails = false;
  auto kill = rig.jobs->kill("a", "bash-1", "enough");
  CHECK(kill.requested);
  CHECK(kill.job.status == JobStatus::stopping);
  CHECK(work->reasons == std::vector<std::string>{"enough"});
  work->end(3);
  rig.turn();
  auto again = rig.jobs->kill("a", "bash-1", "enough");
  CHECK_FALSE(again.requested);
  CHECK(again.job.detail == "exit code: 3");
}

TEST_CASE("jobs: a wait ends with the job, with its limit, or with its call") {
  Rig rig;
  auto work = rig.start();
  CHECK(await_task(rig.loop, rig.jobs->wait("a", "bash-1", 5ms, {})).status == JobStatus::running);
  rig.loop.post([&] { work->end(0); });
  CHECK(await_task(rig.loop, rig.jobs->wait("a", "bash-1", 60s, {})).status ==
        JobStatus::completed);

  rig.start();
  CHECK(thrown_by([&] { await_task(rig.loop, rig.jobs->wait("a", "bash-2", 0ms, {})); }).text ==
        "invalid wait timeout: expected a positive number of milliseconds, got 0");
  AbortController abort;
  rig.loop.post([&] { rig.loop.post([&] { abort.abort(); }); });
  CHECK(thrown_by([&] {
          await_task(rig.loop, rig.jobs->wait("a", "bash-2", 60s, abort.signal()));
        }).text == "wait aborted");
  CHECK(rig.jobs->list("a")[1].status == JobStatus::running);
}

TEST_CASE("jobs: the end of the service ends its jobs and waits for them") {
  Rig rig;
  auto obeys = rig.start();
  obeys->obeys = true;
  auto slow = rig.start();
  bool over = false;
  TaskScope scope(rig.loop, [](std::exception_ptr) {});
  auto dispose = [](JobRegistry* jobs, bool* done) -> Task<> {
    auto disposing = jobs->dispose();
    co_await disposing;
    *done = true;
  };
  scope.start(dispose(rig.jobs.get(), &over));
  run_for(rig.loop, 20ms);
  CHECK(obeys->reasons == std::vector<std::string>{"jobs service disposed"});
  CHECK_FALSE(over);
  slow->end();
  CHECK(stockade::test::wait_until(rig.loop, [&] { return over; }));
}

TEST_CASE("jobs: what the tools say") {
  Rig rig;
  CHECK(rig.call("job_list", json::object()).text == "(no background jobs)");
  auto work = rig.start();
  auto running = rig.call("job_output", {{"jobId", "bash-1"}});
  CHECK(running.text == "(no new output)\n[status: running]");
  CHECK(running.structured["status"] == "running");
  CHECK(rig.call("job_list", json::object()).text == "bash-1 [bash] running \u2014 label");

  work->next = "half";
  CHECK(rig.call("job_output", {{"jobId", "bash-1"}}).text == "half\n[status: running]");
  CHECK(rig.call("job_output", {{"jobId", "bash-1"}, {"wait", true}, {"timeoutMs", 5}}).text ==
        "(no new output)\n[status: running]");
  CHECK(rig.call("job_kill", {{"jobId", "bash-1"}}).text == "requested cancellation of job bash-1");
  CHECK(rig.call("job_output", {{"jobId", "bash-1"}}).text ==
        "(no new output)\n[status: stopping]");
  work->end(0);
  rig.turn();
  CHECK(rig.call("job_kill", {{"jobId", "bash-1"}}).text ==
        "job bash-1 had already finished [status: completed, exit code: 0]");
  CHECK(rig.call("job_output", {{"jobId", "bash-1"}, {"wait", true}}).text ==
        "(no new output)\n[status: completed, exit code: 0]");
}

TEST_CASE("jobs: bad arguments of the tools are error results") {
  Rig rig;
  rig.start();
  struct Row {
    const char* tool;
    json arguments;
    std::string text;
  };
  for (const auto& row : {
           Row{"job_output", json::object(), "missing required property \"jobId\""},
           Row{"job_output", {{"jobId", 5}}, "\"jobId\" must be a string"},
           Row{"job_output", {{"jobId", "bash-1"}, {"wait", 1}}, "\"wait\" must be a boolean"},
           Row{"job_output",
               {{"jobId", "bash-1"}, {"wait", true}, {"timeoutMs", 0}},
               "invalid wait timeout: expected a positive number of milliseconds, got 0"},
           Row{"job_output",
               {{"jobId", "bash-1"}, {"timeoutMs", "5"}},
               "\"timeoutMs\" must be a number"},
           Row{"job_kill",
               {{"jobid", "bash-1"}},
               "unknown property \"jobid\" (did you mean \"jobId\"?)"},
           Row{"job_kill", {{"jobId", "bash-9"}}, "unknown job bash-9 (did you mean \"bash-1\"?)"},
           Row{"job_list", json::array(), "arguments must be an object"},
       }) {
    CAPTURE(row.text);
    auto result = rig.call(row.tool, row.arguments);
    CHECK(result.is_error);
    CHECK(result.text == "Error: " + row.text);
  }
}
