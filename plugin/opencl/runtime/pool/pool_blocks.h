// Blocks, their segments, and the shelves of free blocks. It has no lock, no driver and no
// statistics, only the mechanics of splitting and coalescing.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <unordered_map>
#include <vector>

#include "runtime/pool/pool.h"

namespace ocltensor::runtime {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kBlockAlignment = 512;
inline constexpr uint64_t kMaxSmallRequest = kMiB;
inline constexpr uint64_t kMinLargeRequest = 10 * kMiB;  // from here on a segment of its own size
inline constexpr uint64_t kSmallSegment = 8 * kMiB;
inline constexpr uint64_t kMediumSegment = 32 * kMiB;
inline constexpr uint64_t kSegmentGranule = 2 * kMiB;
inline constexpr uint64_t kMinRemainder = 64 << 10;  // a smaller rest stays with its block

// Medium and large requests are kept apart: a medium block in the rest of a large segment would
// outlive its neighbour, and so keep memory that no large request could use.
// kImported: others' memory, one block that is never on a shelf.
enum PoolKind : uint8_t { kSmall, kMedium, kLarge, kImported, kPoolKinds };
inline constexpr PoolKind kAllPools[] = {kSmall, kMedium, kLarge};

struct Block;

struct Segment {
  tb_address base;
  uint64_t bytes;
  void* handle;
  PoolKind kind;
  Block* first = nullptr;
  uint64_t last_use = 0;  // when it became fully free
};

enum class BlockState : uint8_t { kLive, kPending, kFree };

struct Block {
  Segment* segment;  // null: not in use
  Block* previous;   // neighbours by address
  Block* next;
  uint64_t offset;
  uint64_t bytes;
  uint64_t requested;
  // Of a free block: the stream whose earlier work, up to the ticket, may still use it; kNoStream:
  // none.
  StreamId owner;
  uint64_t ticket;
  BlockState state;
  std::vector<StreamId> uses;  // other streams that use it, while it is allocated

  tb_address address() const { return segment->base + offset; }
  bool fills_segment() const { return bytes == segment->bytes; }
};

uint64_t round_up(uint64_t bytes, uint64_t granule);
// The size of the block for a request, always larger than the request.
uint64_t block_bytes(uint64_t requested);

class BlockStore {
 public:
  struct Order {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->address() < b->address();
    }
    bool operator()(const Block* a, uint64_t bytes) const { return a->bytes < bytes; }
  };
  using Shelf = std::set<Block*, Order>;

  // Adds a segment; returns its only block, taken.
  Block* add_segment(tb_address base, uint64_t bytes, void* handle, PoolKind kind);
  // Removes a fully free segment.
  void remove_segment(Segment* segment);

  // Best fit among the blocks of the stream and of no stream; taken off its shelf, not split. Null:
  // none.
  Block* take(PoolKind kind, StreamId stream, uint64_t bytes);
  // Cuts the bytes beyond `bytes` off a taken block, if they are worth a block, and shelves them.
  void split(Block* block, uint64_t bytes);
  // Makes a block free, merges it with free neighbours, and shelves the result.
  void put(Block* block, StreamId owner, uint64_t ticket);
  // To be called when a free block's owner has passed its ticket: the block becomes free for every
  // stream, and merges again.
  void disown(Block* block);
  // Takes a free block off its shelf.
  void withdraw(Block* block) { unshelve(block); }
  // Merges the stream's free blocks with neighbours that belong to no stream.
  void annex(StreamId stream, PoolKind kind);

  struct StreamShelf {
    StreamId stream;
    Shelf shelf;
  };
  std::vector<StreamShelf>& shelves(PoolKind kind) { return shelves_[kind]; }
  const std::vector<StreamShelf>& shelves(PoolKind kind) const { return shelves_[kind]; }
  const std::unordered_map<tb_address, Segment>& segments() const { return segments_; }
  std::unordered_map<tb_address, Segment>& segments() { return segments_; }
  uint64_t cached_bytes() const { return cached_bytes_; }    // of fully free segments
  uint64_t private_bytes() const { return private_bytes_; }  // free, of private pools: not cached

 private:
  Shelf& shelf_of(PoolKind kind, StreamId stream);
  Shelf::iterator best(Shelf& shelf, uint64_t bytes);
  void shelve(Block* block);
  void unshelve(Block* block);
  bool swallow(Block* block, Block* neighbour);
  Block* new_block();

  std::unordered_map<tb_address, Segment> segments_;
  std::vector<StreamShelf> shelves_[kPoolKinds];
  std::deque<Block> blocks_;  // never shrinks; spare_ are the unused ones
  std::vector<Block*> spare_;
  uint64_t cached_bytes_ = 0;
  uint64_t private_bytes_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace ocltensor::runtime
