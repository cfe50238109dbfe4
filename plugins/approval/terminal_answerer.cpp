// SPDX-License-Identifier: MIT
#include "plugins/approval/terminal_answerer.hpp"

#include <termios.h>
#include <unistd.h>
#include <uv.h>

#include <cerrno>

#include "framework/error.hpp"

namespace stockade {

struct TerminalAnswerer::Poll {
  explicit Poll(Loop& loop) : ready(loop) {}
  uv_poll_t handle{};
  Completion<> ready;
};

TerminalAnswerer::TerminalAnswerer(Loop& loop, Fd terminal, std::shared_ptr<const void> code)
    : code_(std::move(code)), loop_(loop), terminal_(std::move(terminal)) {
  auto poll = std::make_unique<Poll>(loop);
  if (int error = uv_poll_init(loop.uv(), &poll->handle, terminal_.get()); error != 0)
    throw Error("TERMINAL_UNUSABLE",
                std::string("the terminal cannot be read: ") + uv_strerror(error));
  poll_ = poll.release();
  poll_->handle.data = poll_;
}

TerminalAnswerer::~TerminalAnswerer() {
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_->handle),
           [](uv_handle_t* handle) { delete static_cast<Poll*>(handle->data); });
}

std::string terminal_question(const Escalation& escalation) {
  auto shown = [](const std::string& text) {
    std::string safe;
    for (char c : text) {
      auto byte = static_cast<unsigned char>(c);
      if (c == '\n') {
        safe += "\n    ";
      } else if (c == '\t' || (byte >= 0x20 && byte < 0x7f)) {
        safe += c;
      } else {  // also beyond ASCII: letters that look like others, and that change direction
        constexpr char kHex[] = "0123456789abcdef";
        safe += "\\x";
        safe += kHex[byte >> 4];
        safe += kHex[byte & 15];
      }
    }
    return safe;
  };
  std::string reach = escalation.to == SandboxMode::danger_full_access
                          ? "without any sandbox"
                          : "with permission to write " + shown(escalation.workspace_root);
  return "\nstockade: a call asks to run once " + reach + " (" + to_string(escalation.to) +
         "):\n    " + shown(escalation.detail) + "\n    " + shown(escalation.reason) +
         "\nRun it? [y/N] ";
}

Task<std::optional<std::string>> TerminalAnswerer::read_line() {
  std::string line;
  for (;;) {
    poll_->ready = Completion<>(loop_);
    uv_poll_start(&poll_->handle, UV_READABLE, [](uv_poll_t* handle, int, int) {
      uv_poll_stop(handle);
      static_cast<Poll*>(handle->data)->ready.settle();
    });
    Completion<> ready = poll_->ready;
    co_await ready;
    char chunk[256];
    ssize_t n = read(terminal_.get(), chunk, sizeof chunk);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) co_return std::nullopt;
    line.append(chunk, static_cast<std::size_t>(n));
    if (auto end = line.find('\n'); end != std::string::npos) co_return line.substr(0, end);
    if (line.size() > 4096) co_return std::nullopt;
  }
}

Task<std::optional<EscalationOutcome>> TerminalAnswerer::answer(Escalation escalation,
                                                                AbortSignal) {
  while (turn_) {
    Completion<> before = *turn_;
    co_await before;
  }
  // However this ends, the next is asked.
  struct Turn {
    explicit Turn(TerminalAnswerer& a) : answerer(a) { answerer.turn_.emplace(answerer.loop_); }
    Turn(const Turn&) = delete;
    ~Turn() {
      uv_poll_stop(&answerer.poll_->handle);
      std::exchange(answerer.turn_, std::nullopt)->settle();
    }
    TerminalAnswerer& answerer;
  } turn(*this);

  // What was typed before the question is no answer to it.
  tcflush(terminal_.get(), TCIFLUSH);
  std::string question = terminal_question(escalation);
  for (std::string_view rest = question; !rest.empty();) {
    ssize_t n = write(terminal_.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) co_return EscalationOutcome::unavailable;
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  auto reading = read_line();
  std::optional<std::string> line = co_await reading;
  if (!line) co_return EscalationOutcome::cancelled;
  co_return *line == "y" || *line == "yes" || *line == "Y" ? EscalationOutcome::approved
                                                           : EscalationOutcome::rejected;
}

}  // namespace stockade
