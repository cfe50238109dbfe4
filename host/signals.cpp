// SPDX-License-Identifier: MIT
#include "host/signals.hpp"

#include <signal.h>
#include <uv.h>

namespace stockade {

struct AbortOnSignal::State {
  AbortController controller;
  int caught = 0;
  uv_signal_t handles[3]{};
  int open = 0;
};

AbortOnSignal::AbortOnSignal(Loop& loop) : state_(new State) {
  const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  for (int i = 0; i < 3; ++i) {
    uv_signal_t& handle = state_->handles[i];
    uv_signal_init(loop.uv(), &handle);
    handle.data = state_;
    ++state_->open;
    uv_signal_start(
        &handle,
        [](uv_signal_t* h, int signal) {
          auto& state = *static_cast<State*>(h->data);
          if (state.caught == 0) state.caught = signal;
          state.controller.abort("the host was told to stop");
        },
        signals[i]);
    uv_unref(reinterpret_cast<uv_handle_t*>(&handle));
  }
}

AbortOnSignal::~AbortOnSignal() {
  for (auto& handle : state_->handles)
    uv_close(reinterpret_cast<uv_handle_t*>(&handle), [](uv_handle_t* h) {
      auto* state = static_cast<State*>(h->data);
      if (--state->open == 0) delete state;
    });
}

AbortSignal AbortOnSignal::signal() const {
  return state_->controller.signal();
}
int AbortOnSignal::caught() const noexcept {
  return state_->caught;
}

void AbortOnSignal::abort(int as_signal, const char* reason) {
  if (state_->caught == 0) state_->caught = as_signal;
  state_->controller.abort(reason);
}

}  // namespace stockade
