// Private pools: memory that a recorded graph keeps.
#include <algorithm>

#include "runtime/pool/pool_state.h"

namespace ocltensor::runtime {

StreamId PoolState::diverted(StreamId stream) const {
  for (const auto& [from, to] : diverted_)
    if (from == stream) return to;
  return stream;
}

void PoolState::divert(StreamId stream, StreamId to) {
  std::erase_if(diverted_, [&](const auto& entry) { return entry.first == stream; });
  if (to == kNoStream) return;
  check(clock_.is_open(to), "{:#x} is no private pool", to);
  diverted_.emplace_back(stream, to);
}

std::vector<Ticket> PoolState::all_streams() {
  std::vector<Ticket> tickets;
  for (const StreamId stream : clock_.streams())
    tickets.emplace_back(stream, clock_.current(stream));
  return tickets;
}

// A block of a private pool that another stream frees: replays may have used it on any stream.
void PoolState::leave_private(Block* block, StreamId stream) {
  auto& uses = block->uses;
  for (const auto& [other, ticket] : all_streams())
    if (other != stream && std::find(uses.begin(), uses.end(), other) == uses.end())
      uses.push_back(other);
  if (!clock_.is_open(block->owner)) block->owner = kNoStream;
}

void PoolState::close_private(StreamId id) {
  if (!clock_.is_open(id)) return;
  clock_.close(id);
  std::erase_if(diverted_, [&](const auto& entry) { return entry.second == id; });
  const std::vector<Ticket> waits = all_streams();
  for (PendingBlock& entry : pending_)
    if (entry.block->owner == id) entry.block->owner = kNoStream;
  for (const PoolKind kind : kAllPools) {
    auto& shelves = store_.shelves(kind);
    std::vector<Block*> blocks;
    for (const auto& [stream, shelf] : shelves)
      if (stream == id) blocks.assign(shelf.begin(), shelf.end());
    for (Block* block : blocks) {
      store_.withdraw(block);
      block->state = BlockState::kPending;
      block->owner = kNoStream;
      block->ticket = 0;
      add_to(stats_.active_bytes, block->bytes);
      pending_.push_back({block, waits});
    }
    std::erase_if(shelves, [&](const auto& entry) { return entry.stream == id; });
  }
  drain_pending();
}

}  // namespace ocltensor::runtime
