// SPDX-License-Identifier: MIT
// A loop with a tree of contexts on it, and bounded ways to run them.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "framework/context.hpp"
#include "framework/error.hpp"
#include "framework/fd.hpp"
#include "tests/support/scratch.hpp"

namespace stockade::test {

using Trace = std::vector<std::string>;

// Fails rather than hangs.
inline void run_until(Loop& loop, const std::function<bool()>& done) {
  bool late = false;
  Timer limit(loop);
  limit.start(std::chrono::seconds(20), [&late] { late = true; });
  loop.run_until([&] { return late || done(); });
  if (late) throw std::runtime_error("the awaited state did not come within 20 s");
}

inline void run_for(Loop& loop, std::chrono::milliseconds time) {
  bool over = false;
  Timer timer(loop);
  timer.start(time, [&over] { over = true; });
  loop.run_until([&over] { return over; });
}

// To its end, with its error.
inline void run(Loop& loop, Task<> task) {
  std::exception_ptr error;
  TaskScope scope(loop, [&error](std::exception_ptr e) { error = e; });
  scope.start(std::move(task));
  run_until(loop, [&scope] { return scope.size() == 0; });
  if (error) std::rethrow_exception(error);
}

inline Task<> wait_for(Completion<> completion) {
  co_await completion;
}

struct Failure {
  std::string code;
  std::string text;
  std::string operand;
};

// The Error that `work` throws; another exception, or none, gives the code "".
inline Failure failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return {error.code(), error.what(), error.operand()};
  } catch (const std::exception& error) {
    return {"", std::string("not an Error: ") + error.what(), ""};
  }
  return {"", "nothing was thrown", ""};
}

class Tree {
 public:
  explicit Tree(LogLevel level = LogLevel::off)
      : root(Context::root(loop, Log::standard_error(level))) {}
  ~Tree() {
    try {
      dispose(root.fiber());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "a tree cannot be disposed: %s\n", error.what());
      std::abort();
    }
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  void settle(const std::shared_ptr<Fiber>& fiber) { run(loop, fiber->settled()); }
  void dispose(const std::shared_ptr<Fiber>& fiber) { run(loop, wait_for(fiber->dispose())); }
  void undo(Disposer disposer) { run(loop, disposer.dispose()); }

  Loop loop;
  Context root;
};

using Body = std::function<void(const Context&, const nlohmann::json&)>;

inline Task<> run_body(Body body, Context context, nlohmann::json config) {
  body(context, config);
  co_return;
}

inline PluginDefinition plugin(std::string name, std::vector<std::string> inject, Body body) {
  PluginDefinition definition;
  definition.name = std::move(name);
  definition.inject = std::move(inject);
  definition.apply = [body = std::move(body)](Context context, const nlohmann::json& config) {
    return run_body(body, std::move(context), config);
  };
  return definition;
}

// What is written to standard error while it lives.
class StandardError {
 public:
  StandardError() : saved_(fcntl(2, F_DUPFD_CLOEXEC, 10)), file_(scratch_ / "stderr") {
    std::fflush(stderr);
    Fd out(open(file_.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
    dup2(out.get(), 2);
  }
  ~StandardError() {
    std::fflush(stderr);
    dup2(saved_.get(), 2);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

  std::string text() const {
    std::fflush(stderr);
    return read_file(file_);
  }

 private:
  Scratch scratch_;
  Fd saved_;
  std::string file_;
};

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

}  // namespace stockade::test
