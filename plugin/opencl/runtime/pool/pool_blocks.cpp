// Splits and coalesces blocks, and finds them by best fit.
#include "pool_blocks.h"

#include <algorithm>
#include <bit>

namespace ocltensor::runtime {

uint64_t round_up(uint64_t bytes, uint64_t granule) {
  return (bytes + granule - 1) / granule * granule;
}

// Sizes above 1 MiB are rounded to 32 per power of two, so that slightly different shapes use the
// same blocks; at most 1/32 is wasted.
uint64_t block_bytes(uint64_t requested) {
  uint64_t granule = kBlockAlignment;
  if (requested > kMaxSmallRequest) granule = std::max(granule, std::bit_floor(requested) / 32);
  const uint64_t bytes = round_up(requested, granule);
  return bytes > requested ? bytes : bytes + kBlockAlignment;
}

Block* BlockStore::new_block() {
  if (spare_.empty()) {
    spare_.reserve(blocks_.size() + 1);  // reserved now, because returning a block must not throw
    return &blocks_.emplace_back();
  }
  Block* block = spare_.back();
  spare_.pop_back();
  return block;
}

Block* BlockStore::add_segment(tb_address base, uint64_t bytes, void* handle, PoolKind kind) {
  Block* block = new_block();
  Segment& segment = segments_[base];
  segment = {base, bytes, handle, kind, block, ++uses_};
  *block = {&segment, nullptr, nullptr, 0, bytes, 0, kNoStream, 0, BlockState::kLive, {}};
  return block;
}

void BlockStore::remove_segment(Segment* segment) {
  unshelve(segment->first);
  spare_.push_back(segment->first);
  segments_.erase(segment->base);
}

BlockStore::Shelf& BlockStore::shelf_of(PoolKind kind, StreamId stream) {
  for (StreamShelf& entry : shelves_[kind])
    if (entry.stream == stream) return entry.shelf;
  return shelves_[kind].emplace_back(StreamShelf{stream, {}}).shelf;
}

// A big unoccupied segment is not split for a much smaller request: a long-lived small block in it
// would keep the rest from serving requests of the size that it was made for.
BlockStore::Shelf::iterator BlockStore::best(Shelf& shelf, uint64_t bytes) {
  auto found = shelf.lower_bound(bytes);
  while (found != shelf.end() && (*found)->bytes > kMediumSegment && (*found)->fills_segment() &&
         bytes < (*found)->bytes / 4)
    ++found;
  return found;
}

Block* BlockStore::take(PoolKind kind, StreamId stream, uint64_t bytes) {
  Block* chosen = nullptr;
  for (StreamShelf& entry : shelves_[kind]) {
    if (entry.stream != stream && entry.stream != kNoStream) continue;
    const auto found = best(entry.shelf, bytes);
    if (found == entry.shelf.end()) continue;
    const bool better = chosen == nullptr || (*found)->bytes < chosen->bytes ||
                        ((*found)->bytes == chosen->bytes && entry.stream == stream);
    if (better) chosen = *found;
  }
  if (chosen != nullptr) unshelve(chosen);
  return chosen;
}

void BlockStore::split(Block* block, uint64_t bytes) {
  const uint64_t least = block->segment->kind == kSmall ? kBlockAlignment : kMinRemainder;
  if (block->bytes < bytes + least) return;
  Block* rest = new_block();
  *rest = {block->segment,       block, block->next,  block->offset + bytes,
           block->bytes - bytes, 0,     block->owner, block->ticket,
           BlockState::kFree,    {}};
  if (rest->next != nullptr) rest->next->previous = rest;
  block->next = rest;
  block->bytes = bytes;
  shelve(rest);
}

void BlockStore::put(Block* block, StreamId owner, uint64_t ticket) {
  block->state = BlockState::kFree;
  block->owner = owner;
  block->ticket = ticket;
  block->uses.clear();
  while (swallow(block, block->previous)) {
  }
  while (swallow(block, block->next)) {
  }
  shelve(block);
}

void BlockStore::disown(Block* block) {
  unshelve(block);
  put(block, kNoStream, 0);
}

void BlockStore::annex(StreamId stream, PoolKind kind) {
  const Shelf& shelf = shelf_of(kind, stream);
  const std::vector<Block*> blocks(shelf.begin(), shelf.end());
  const auto is_nobodys = [](const Block* block) {
    return block != nullptr && block->state == BlockState::kFree && block->owner == kNoStream;
  };
  for (Block* block : blocks) {
    if (block->segment == nullptr) continue;  // merged into an earlier one
    if (!is_nobodys(block->previous) && !is_nobodys(block->next)) continue;
    unshelve(block);
    put(block, stream, block->ticket);
  }
}

// A stream's block absorbs neighbours of the same stream and of no stream. A block of no stream
// absorbs only such, because memory that is free for all would otherwise wait for a stream again.
// Blocks of two streams stay separate: their union would have to wait for both. A private pool's
// block absorbs only such of its own, because it keeps them.
bool BlockStore::swallow(Block* block, Block* neighbour) {
  if (neighbour == nullptr || neighbour->state != BlockState::kFree) return false;
  if (neighbour->owner != block->owner &&
      (neighbour->owner != kNoStream || is_private(block->owner)))
    return false;
  unshelve(neighbour);
  if (neighbour->owner != kNoStream) block->ticket = std::max(block->ticket, neighbour->ticket);
  block->bytes += neighbour->bytes;
  if (neighbour == block->previous) {
    block->offset = neighbour->offset;
    block->previous = neighbour->previous;
    if (block->previous != nullptr)
      block->previous->next = block;
    else
      block->segment->first = block;
  } else {
    block->next = neighbour->next;
    if (block->next != nullptr) block->next->previous = block;
  }
  neighbour->segment = nullptr;
  spare_.push_back(neighbour);
  return true;
}

void BlockStore::shelve(Block* block) {
  shelf_of(block->segment->kind, block->owner).insert(block);
  if (is_private(block->owner)) {
    private_bytes_ += block->bytes;
    return;
  }
  if (!block->fills_segment()) return;
  cached_bytes_ += block->bytes;
  block->segment->last_use = ++uses_;
}

void BlockStore::unshelve(Block* block) {
  shelf_of(block->segment->kind, block->owner).erase(block);
  if (is_private(block->owner))
    private_bytes_ -= block->bytes;
  else if (block->fills_segment())
    cached_bytes_ -= block->bytes;
}

}  // namespace ocltensor::runtime
