// SPDX-License-Identifier: MIT
// Admits calls, so many at a time and one in each turn of the loop, since starting a process is
// what holds a turn up longest. Who waits is served fairly: the owner with the fewest running calls
// goes first, and among equals whoever has waited longest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "framework/completion.hpp"
#include "framework/loop.hpp"

namespace stockade {

class CallQueue : public std::enable_shared_from_this<CallQueue> {
 public:
  // Both at least 1.
  CallQueue(Loop& loop, std::size_t limit, std::size_t most_waiting)
      : loop_(loop), limit_(limit), most_waiting_(most_waiting) {}

  // A place in the queue, then a running call; dropping it gives up either.
  class Ticket {
   public:
    Ticket(std::shared_ptr<CallQueue> queue, std::string owner);
    ~Ticket();
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    // Settles with true once the call may run, with false when cancel() came first.
    const Completion<bool>& admitted() const noexcept { return admitted_; }
    void cancel();

   private:
    friend class CallQueue;
    std::shared_ptr<CallQueue> queue_;
    std::string owner_;
    Completion<bool> admitted_;
    bool running_ = false;
  };

  // Throws Error `SHELL_BUSY` when too many wait already.
  std::unique_ptr<Ticket> join(std::string owner);

  std::size_t limit() const noexcept { return limit_; }
  std::size_t running() const noexcept { return running_; }
  std::size_t waiting() const noexcept { return waiting_.size(); }

 private:
  void admit();  // the next one, on a later turn
  void admit_one();

  Loop& loop_;
  std::size_t limit_;
  std::size_t most_waiting_;
  std::size_t running_ = 0;
  std::map<std::string, std::size_t> running_of_;
  std::list<Ticket*> waiting_;  // in the order of coming
  bool posted_ = false;
};

}  // namespace stockade
