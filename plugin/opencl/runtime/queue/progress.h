// How far a stream's commands have come: how many were enqueued, and how many have run for sure.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <utility>

#include "runtime/driver/clhpp.h"

namespace ocltensor::opencl {

// A ticket is a number of commands: it has passed when so many have run, or have failed. The two
// numbers may be read by any thread; the rest is for the holder of the stream's lock.
class Progress {
 public:
  uint64_t enqueued() const { return enqueued_.load(std::memory_order_acquire); }
  bool has_passed(uint64_t ticket) const {
    return ticket <= completed_.load(std::memory_order_acquire);
  }
  // Whether no command can be running any more.
  bool is_over() const { return completed_.load() == enqueued_.load(); }

  void count() { enqueued_.fetch_add(1, std::memory_order_release); }
  // All commands up to the ticket have run, and none that is marked is waited for any more.
  void finish(uint64_t ticket);

  // Whether a mark will tell that the ticket has passed.
  bool is_marked(uint64_t ticket) const { return !marks_.empty() && marks_.back().first >= ticket; }
  // `reached` comes after the first `ticket` commands.
  void mark(uint64_t ticket, cl::Event reached) { marks_.emplace_back(ticket, std::move(reached)); }
  // Asks the driver which marks have been reached.
  void poll();

 private:
  void raise_to(uint64_t ticket);

  std::atomic<uint64_t> enqueued_{0};
  std::atomic<uint64_t> completed_{0};
  std::deque<std::pair<uint64_t, cl::Event>> marks_;
};

}  // namespace ocltensor::opencl
