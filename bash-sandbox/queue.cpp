// SPDX-License-Identifier: MIT
#include "bash-sandbox/queue.hpp"

#include <utility>

#include "framework/error.hpp"

namespace stockade {

CallQueue::Ticket::Ticket(std::shared_ptr<CallQueue> queue, std::string owner)
    : queue_(std::move(queue)), owner_(std::move(owner)), admitted_(queue_->loop_) {}

CallQueue::Ticket::~Ticket() {
  if (!running_) {
    queue_->waiting_.remove(this);
    return;
  }
  --queue_->running_;
  auto of_owner = queue_->running_of_.find(owner_);
  if (--of_owner->second == 0) queue_->running_of_.erase(of_owner);
  queue_->admit();
}

void CallQueue::Ticket::cancel() {
  if (running_) return;
  queue_->waiting_.remove(this);
  admitted_.settle(false);
}

std::unique_ptr<CallQueue::Ticket> CallQueue::join(std::string owner) {
  if (running_ >= limit_ && waiting_.size() >= most_waiting_)
    throw Error("SHELL_BUSY", std::to_string(running_) + " calls run and " +
                                  std::to_string(waiting_.size()) +
                                  " wait, which is as many as may; try again later");
  auto ticket = std::make_unique<Ticket>(shared_from_this(), std::move(owner));
  waiting_.push_back(ticket.get());
  admit();
  return ticket;
}

void CallQueue::admit() {
  if (posted_ || running_ >= limit_ || waiting_.empty()) return;
  posted_ = true;
  loop_.post([weak = weak_from_this()] {
    auto queue = weak.lock();
    if (!queue) return;
    queue->posted_ = false;
    queue->admit_one();
    queue->admit();
  });
}

void CallQueue::admit_one() {
  if (running_ >= limit_ || waiting_.empty()) return;
  auto running_calls = [this](const Ticket* ticket) {
    auto found = running_of_.find(ticket->owner_);
    return found == running_of_.end() ? std::size_t{0} : found->second;
  };
  auto next = waiting_.begin();
  for (auto each = waiting_.begin(); each != waiting_.end(); ++each)
    if (running_calls(*each) < running_calls(*next)) next = each;
  Ticket& ticket = **next;
  waiting_.erase(next);
  ticket.running_ = true;
  ++running_;
  ++running_of_[ticket.owner_];
  ticket.admitted_.settle(true);
}

}  // namespace stockade
