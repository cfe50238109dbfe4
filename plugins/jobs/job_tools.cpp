// SPDX-License-Identifier: MIT
#include "plugins/jobs/job_tools.hpp"

#include <algorithm>
#include <cmath>

#include "framework/error.hpp"
#include "framework/fields.hpp"
#include "framework/json.hpp"

namespace stockade {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kDefaultWaitMs = 30000;
constexpr double kMostWaitMs = 600000;

std::string owner_of(const ToolCall& call) {
  return call.session ? call.session->session().id : "";
}

void check_arguments(const nlohmann::json& arguments, const std::vector<std::string>& known) {
  auto refuse = [](const std::string& what) { throw Error("ARGUMENTS_INVALID", what); };
  if (!arguments.is_object()) refuse("arguments must be an object");
  for (const auto& item : arguments.items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      refuse("unknown property \"" + item.key() + "\"" + suggestion(item.key(), known));
}

std::string job_id(const nlohmann::json& arguments) {
  auto found = arguments.find("jobId");
  if (found == arguments.end())
    throw Error("ARGUMENTS_INVALID", "missing required property \"jobId\"");
  if (!found->is_string()) throw Error("ARGUMENTS_INVALID", "\"jobId\" must be a string");
  return found->get<std::string>();
}

Json job_json(const JobSnapshot& job) {
  Json json{{"jobId", job.id},
            {"kind", job.kind},
            {"status", enum_name(job.status)},
            {"label", job.label}};
  if (!job.detail.empty()) json["detail"] = job.detail;
  return json;
}

Json job_properties() {
  return {
      {"jobId", {{"type", "string"}}},
      {"kind", {{"type", "string"}}},
      {"status",
       {{"type", "string"}, {"enum", {"running", "stopping", "completed", "killed", "failed"}}}},
      {"label", {{"type", "string"}}},
      {"detail", {{"type", "string"}}}};
}

Json object_schema(Json properties, Json required) {
  return {
      {"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}};
}

Json input_schema(Json properties, Json required) {
  Json schema = object_schema(std::move(properties), std::move(required));
  schema["additionalProperties"] = false;
  return schema;
}

Json hints(const char* title, bool read_only, bool destructive) {
  return {{"title", title},
          {"readOnlyHint", read_only},
          {"destructiveHint", destructive},
          {"idempotentHint", false},
          {"openWorldHint", false}};
}

const Json kJobId{{"type", "string"}, {"description", "As run_in_background returned it."}};

// What every tool of this file shares: errors become results.
class JobTool : public Tool {
 public:
  explicit JobTool(std::shared_ptr<Jobs> jobs) : jobs_(std::move(jobs)) {}
  Task<ToolResult> call(ToolCall call) final {
    std::exception_ptr failure;
    try {
      if (call.abort.aborted())
        throw Error("ABORTED_BEFORE_DISPATCH", "tool call aborted before dispatch");
      auto answering = answer(std::move(call));
      ToolResult result = co_await answering;
      co_return result;
    } catch (...) {
      failure = std::current_exception();
    }
    co_return tool_error(code_of(failure, "INTERNAL"), stockade::describe(failure));
  }

 protected:
  virtual Task<ToolResult> answer(ToolCall call) = 0;
  std::shared_ptr<Jobs> jobs_;
};

class JobOutput final : public JobTool {
 public:
  using JobTool::JobTool;
  ToolDescription describe() const override {
    Json properties{
        {"jobId", kJobId},
        {"wait",
         {{"type", "boolean"}, {"description", "Wait until the job has ended, or for timeoutMs."}}},
        {"timeoutMs",
         {{"type", "number"},
          {"exclusiveMinimum", 0},
          {"description", "How long to wait: 30000 by default, at most 600000."}}}};
    Json output = job_properties();
    output["output"] = {{"type", "string"}};
    return {"job_output",
            "Read a background job",
            "What a background job has printed since it was last read, and its state.",
            input_schema(std::move(properties), {"jobId"}),
            object_schema(std::move(output), {"jobId", "status", "output"}),
            hints("Read a background job", true, false)};
  }

 protected:
  Task<ToolResult> answer(ToolCall call) override {
    check_arguments(call.arguments, {"jobId", "wait", "timeoutMs"});
    std::string id = job_id(call.arguments);
    std::string owner = owner_of(call);
    auto wait = call.arguments.value("wait", nlohmann::json(false));
    if (!wait.is_boolean()) throw Error("ARGUMENTS_INVALID", "\"wait\" must be a boolean");
    auto limit = call.arguments.value("timeoutMs", nlohmann::json(kDefaultWaitMs));
    if (!limit.is_number()) throw Error("ARGUMENTS_INVALID", "\"timeoutMs\" must be a number");
    auto most = limit.get<double>();
    if (!std::isfinite(most) || most <= 0)
      throw Error("ARGUMENTS_INVALID",
                  "invalid wait timeout: expected a positive number of milliseconds, got " +
                      json_text(limit));
    if (wait.get<bool>()) {
      auto ms = static_cast<std::int64_t>(std::ceil(std::min(most, kMostWaitMs)));
      auto waiting = jobs_->wait(owner, id, std::chrono::milliseconds(ms), call.abort);
      co_await waiting;
    }
    Jobs::Read read = jobs_->read(owner, id);
    std::string text = read.output.empty() ? "(no new output)" : read.output;
    if (text.back() != '\n') text += '\n';
    Json structured = job_json(read.job);
    structured["output"] = read.output;
    co_return ToolResult{text + job_status_marker(read.job), std::move(structured), false};
  }
};

class JobList final : public JobTool {
 public:
  using JobTool::JobTool;
  ToolDescription describe() const override {
    Json jobs{{"type", "array"}, {"items", object_schema(job_properties(), {"jobId", "status"})}};
    return {"job_list",
            "List background jobs",
            "The background jobs of this session and their states.",
            input_schema(Json::object(), Json::array()),
            object_schema({{"jobs", std::move(jobs)}}, {"jobs"}),
            hints("List background jobs", true, false)};
  }

 protected:
  Task<ToolResult> answer(ToolCall call) override {
    check_arguments(call.arguments, {});
    std::string text;
    Json jobs = Json::array();
    for (const auto& job : jobs_->list(owner_of(call))) {
      text += (text.empty() ? "" : "\n") + job.id + " [" + job.kind + "] " + enum_name(job.status) +
              " \xE2\x80\x94 " + job.label;
      jobs.push_back(job_json(job));
    }
    Json structured{{"jobs", std::move(jobs)}};
    co_return ToolResult{text.empty() ? "(no background jobs)" : text, std::move(structured),
                         false};
  }
};

class JobKill final : public JobTool {
 public:
  using JobTool::JobTool;
  ToolDescription describe() const override {
    Json output = job_properties();
    output["requested"] = {{"type", "boolean"}};
    return {"job_kill",
            "End a background job",
            "Ends a background job and everything that it started.",
            input_schema({{"jobId", kJobId}}, {"jobId"}),
            object_schema(std::move(output), {"jobId", "status", "requested"}),
            hints("End a background job", false, true)};
  }

 protected:
  Task<ToolResult> answer(ToolCall call) override {
    check_arguments(call.arguments, {"jobId"});
    Jobs::Kill kill = jobs_->kill(owner_of(call), job_id(call.arguments), "job_kill");
    Json structured = job_json(kill.job);
    structured["requested"] = kill.requested;
    std::string text = kill.requested ? "requested cancellation of job " + kill.job.id
                                      : "job " + kill.job.id + " had already finished " +
                                            job_status_marker(kill.job);
    co_return ToolResult{std::move(text), std::move(structured), false};
  }
};

}  // namespace

std::vector<NamedTool> make_job_tools(std::shared_ptr<Jobs> jobs) {
  return {{"job_output", std::make_shared<JobOutput>(jobs)},
          {"job_list", std::make_shared<JobList>(jobs)},
          {"job_kill", std::make_shared<JobKill>(jobs)}};
}

}  // namespace stockade
