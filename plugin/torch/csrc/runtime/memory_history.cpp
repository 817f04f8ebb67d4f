// A bounded list of allocations and frees, and the live allocations.
#include "memory_history.h"

#include <chrono>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace torch_ocl {
namespace {

using Event = MemoryEvent;

// Leaked: memory is freed until the last thread ends.
struct History {
  std::mutex mutex;
  bool stacks = false;
  size_t most = 0;
  std::deque<Event> events;
  std::unordered_map<tb_address, Event> live;
};
History& history() {
  static History& h = *new History;
  return h;
}

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void keep(History& h, Event event) {
  if (h.most == 0) return;
  if (h.events.size() >= h.most) h.events.pop_front();
  h.events.push_back(std::move(event));
}

}  // namespace

void remember_allocation(int device, tb_address address, uint64_t bytes, int64_t stream) noexcept {
  try {
    History& h = history();
    std::shared_ptr<torch::CapturedTraceback> stack;
    if (h.stacks) stack = torch::CapturedTraceback::gather(true, false, false);
    Event event{true, device, address, bytes, stream, now_us(), std::move(stack)};
    const std::lock_guard lock(h.mutex);
    h.live[address] = event;
    keep(h, std::move(event));
  } catch (const std::exception&) {  // out of memory: the event is not recorded
  }
}

void remember_free(tb_address address) noexcept {
  try {
    History& h = history();
    const std::lock_guard lock(h.mutex);
    const auto it = h.live.find(address);
    if (it == h.live.end()) return;
    Event event = std::move(it->second);
    h.live.erase(it);
    event.allocated = false;
    event.time_us = now_us();
    keep(h, std::move(event));
  } catch (const std::exception&) {
  }
}

void start_memory_history(bool stacks, size_t most) {
  History& h = history();
  std::deque<Event> old_events;  // their stacks take the GIL: released without the lock
  std::unordered_map<tb_address, Event> old_live;
  const std::lock_guard lock(h.mutex);
  old_events.swap(h.events);
  old_live.swap(h.live);
  h.stacks = stacks;
  h.most = most;
  remembering = true;
}
void stop_memory_history() { remembering = false; }

MemoryHistory memory_history() {
  History& h = history();
  const std::lock_guard lock(h.mutex);
  MemoryHistory copy;
  copy.events.assign(h.events.begin(), h.events.end());
  for (const auto& [address, event] : h.live) copy.live.push_back(event);
  return copy;
}

}  // namespace torch_ocl
