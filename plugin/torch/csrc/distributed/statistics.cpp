// One table for all groups of the process.
#include "statistics.h"

#include <atomic>
#include <mutex>

namespace torch_ocl::distributed {
namespace {

struct Table {
  std::mutex mutex;
  Statistics all;
};

Table& table() {
  static auto& instance = *new Table;  // leaked: threads of lanes may outlive main
  return instance;
}

std::atomic<bool> is_told_apart = false;

}  // namespace

bool parts_are_told_apart() { return is_told_apart.load(std::memory_order_relaxed); }

void count_call(c10d::OpType op, size_t bytes, const Stopwatch& watch) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  Totals& totals = t.all.calls[op];
  totals.calls += 1;
  totals.bytes += bytes;
  for (size_t k = 0; k < kParts; ++k) totals.parts[k] += watch.parts()[k];
}

void count_wait(c10d::OpType op, Clock::duration waited) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  t.all.calls[op].waited += waited;
}

void count_step(Clock::duration exposed) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  t.all.steps += 1;
  t.all.exposed += exposed;
}

Statistics statistics() {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  return t.all;
}

void reset_statistics() {
  is_told_apart = true;
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  t.all = {};
}

const char* title_of(c10d::OpType op) {
  using c10d::OpType;
  switch (op) {
    case OpType::BROADCAST: return "ocl:broadcast";
    case OpType::ALLREDUCE: return "ocl:all_reduce";
    case OpType::REDUCE: return "ocl:reduce";
    case OpType::ALLGATHER: return "ocl:all_gather";
    case OpType::GATHER: return "ocl:gather";
    case OpType::SCATTER: return "ocl:scatter";
    case OpType::REDUCE_SCATTER: return "ocl:reduce_scatter";
    case OpType::ALLTOALL_BASE:
    case OpType::ALLTOALL: return "ocl:all_to_all";
    case OpType::SEND: return "ocl:send";
    case OpType::RECV:
    case OpType::RECVANYSOURCE: return "ocl:recv";
    case OpType::BARRIER: return "ocl:barrier";
    default: return "ocl:other";
  }
}

}  // namespace torch_ocl::distributed
