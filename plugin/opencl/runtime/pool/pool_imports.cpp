// Memory of others as segments of one block, which lives until it is given up.
#include "runtime/pool/pool_state.h"

namespace ocltensor::runtime {

tb_address PoolState::adopt(void* handle, uint64_t bytes, StreamId stream) {
  const tb_address base = space_.acquire(bytes, handle, pool_);
  Block* block = store_.add_segment(base, bytes, handle, kImported);
  block->owner = stream;
  block->requested = bytes;
  live_[base] = block;
  return base;
}

void PoolState::abandon(tb_address address, Lock& lock) {
  const auto find = [&] {
    Block* block = find_live(address, "release of imported memory");
    if (block->segment->kind != kImported)
      fail(TB_E_INVALID, "{:#x} is memory of this pool, which was not imported", address);
    return block;
  };
  Block* block = find();
  std::vector<Ticket> tickets{{block->owner, clock_.current(block->owner)}};
  for (const StreamId user : block->uses) tickets.emplace_back(user, clock_.current(user));
  wait_for(tickets, lock);
  block = find();  // the lock was let go
  Segment* segment = block->segment;
  void* handle = segment->handle;
  live_.erase(address);
  store_.put(block, kNoStream, 0);
  store_.remove_segment(segment);
  space_.release(address);
  source_.destroy(handle);
}

tb_address PoolState::address_of(void* handle) const {
  for (const auto& [base, segment] : store_.segments())
    if (segment.handle == handle) return base;
  fail(TB_E_INVALID, "the segment is gone");
}

}  // namespace ocltensor::runtime
