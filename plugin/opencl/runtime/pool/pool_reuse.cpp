// Allocates from the shelves, and takes blocks back.
#include <algorithm>
#include <utility>

#include "runtime/pool/pool_state.h"

namespace ocltensor::runtime {

namespace {

constexpr uint64_t kDrainEvery = 64;    // pending frees between two queries of the clock
constexpr int kForeignCandidates = 4;   // blocks that are checked per foreign stream
constexpr uint64_t kPeakWindow = 4096;  // allocations; "recent" covers two such windows

}  // namespace

bool Progress::passed(StreamId stream, uint64_t ticket) {
  if (stream == kNoStream) return true;
  Known& known = known_[stream];
  if (known.any_passed && ticket <= known.passed) return true;
  if (ticket >= known.blocked) return false;
  if (clock_.passed(stream, ticket)) {
    known.any_passed = true;
    known.passed = ticket;
    return true;
  }
  known.blocked = ticket;
  return false;
}

tb_address PoolState::allocate(uint64_t bytes, StreamId stream, Lock& lock) {
  if (bytes > largest_) [[unlikely]]
    fail_too_large(bytes);
  if (!diverted_.empty()) [[unlikely]]
    stream = diverted(stream);
  const PoolKind kind = bytes <= kMaxSmallRequest  ? kSmall
                        : bytes < kMinLargeRequest ? kMedium
                                                   : kLarge;
  // If rounding would exceed the device's limit, the block takes a whole segment, whose guard
  // serves as padding.
  const Request request{bytes, std::min(block_bytes(bytes), largest_), kind, stream};
  if (Block* last = last_freed_; last != nullptr) {
    last_freed_ = nullptr;
    if (last->bytes == request.bytes && last->owner == stream && last->segment->kind == kind &&
        (options_.debug & kDebugIsolated) == 0)
      return hand_out(last, request);
    store_.put(last, last->owner, last->ticket);
  }
  Block* block = (options_.debug & kDebugIsolated) != 0 ? isolated(request)
                                                        : store_.take(kind, stream, request.bytes);
  if (block == nullptr) block = reuse(request);
  if (block == nullptr) block = grow(request, lock);
  return hand_out(block, request);
}

// A block that is free, or has become so, anywhere in the pool; null: none fits.
Block* PoolState::reuse(const Request& request) {
  shelve_last();
  drain_pending();
  if (Block* block = store_.take(request.kind, request.stream, request.bytes)) return block;
  Progress progress(clock_);
  if (Block* block = take_from_others(request, progress)) return block;
  adopt_passed(request.stream, progress);
  return store_.take(request.kind, request.stream, request.bytes);
}

// The best among the few smallest blocks of each other stream whose tickets have passed.
Block* PoolState::take_from_others(const Request& request, Progress& progress) {
  Block* chosen = nullptr;
  for (const auto& [stream, shelf] : store_.shelves(request.kind)) {
    if (stream == request.stream || stream == kNoStream) continue;
    auto candidate = shelf.lower_bound(request.bytes);
    for (int i = 0; i < kForeignCandidates && candidate != shelf.end(); ++i, ++candidate) {
      if (chosen != nullptr && (*candidate)->bytes >= chosen->bytes) break;
      if (!progress.passed(stream, (*candidate)->ticket)) continue;
      chosen = *candidate;
      break;
    }
  }
  if (chosen == nullptr) return nullptr;
  store_.disown(chosen);
  return store_.take(request.kind, request.stream, request.bytes);
}

// Makes every free block of another stream whose ticket has passed free for all, so that neighbours
// coalesce.
void PoolState::adopt_passed(StreamId except, Progress& progress) {
  for (const PoolKind kind : kAllPools) {
    // By index: disowning may add a shelf.
    for (size_t i = 0; i < store_.shelves(kind).size(); ++i) {
      const auto& entry = store_.shelves(kind)[i];
      if (entry.stream == kNoStream || entry.stream == except) continue;
      std::vector<Block*> passed;
      for (Block* block : entry.shelf)
        if (progress.passed(entry.stream, block->ticket)) passed.push_back(block);
      // No block in `passed` disappears before its turn, because disowning absorbs only blocks of
      // no stream.
      for (Block* block : passed) store_.disown(block);
    }
    if (except != kNoStream) store_.annex(except, kind);
  }
}

tb_address PoolState::hand_out(Block* block, const Request& request) {
  store_.split(block, request.bytes);
  block->state = BlockState::kLive;
  block->owner = request.stream;
  block->requested = request.asked;
  const tb_address address = block->address();
  live_[address] = block;
  count_allocated(*block);
  if (debug(kDebugAllocations, request.kind)) [[unlikely]]
    lines.push_back(fmt::format("allocated {} at {:#x} (block {}, segment {:#x}) for stream {:#x}",
                                format_bytes(request.asked), address, format_bytes(block->bytes),
                                block->segment->base, request.stream));
  return address;
}

void PoolState::count_allocated(const Block& block) {
  add_to(stats_.requested_bytes, block.requested);
  add_to(stats_.allocated_bytes, block.bytes);
  add_to(stats_.active_bytes, block.bytes);
  add_to(stats_.allocations, 1);
  if (++window_count_ % kPeakWindow == 0) {
    window_peak_[0] = window_peak_[1];
    window_peak_[1] = 0;
  }
  window_peak_[1] =
      std::max(window_peak_[1], static_cast<uint64_t>(stats_.allocated_bytes.current));
}

Block* PoolState::find_live(tb_address address, const char* what) const {
  const auto found = live_.find(address);
  if (found == live_.end())
    fail(TB_E_INVALID,
         "{}: {:#x} is not the address of a live allocation of this device (freed twice, or an "
         "address inside one?)",
         what, address);
  return found->second;
}

void PoolState::free(tb_address address, StreamId stream) {
  Block* block = find_live(address, "free");
  if (block->segment->kind == kImported)
    fail(TB_E_INVALID, "free: {:#x} is memory that was imported", address);
  if (is_private(block->owner)) [[unlikely]] {
    if (diverted(stream) == block->owner)
      stream = block->owner;
    else
      leave_private(block, stream);
  }
  const StreamId owner = block->owner;
  std::vector<Ticket> waits;
  for (StreamId user : block->uses) waits.emplace_back(user, clock_.current(user));
  if (stream != owner &&
      std::find(block->uses.begin(), block->uses.end(), stream) == block->uses.end())
    waits.emplace_back(stream, clock_.current(stream));
  const uint64_t ticket = clock_.current(owner);

  live_.erase(address);
  take_from(stats_.requested_bytes, block->requested);
  take_from(stats_.allocated_bytes, block->bytes);
  take_from(stats_.allocations, 1);
  if (debug(kDebugRecycles, block->segment->kind)) [[unlikely]]
    lines.push_back(fmt::format("recycled {} at {:#x} of stream {:#x}{}",
                                format_bytes(block->bytes), address, owner,
                                waits.empty() ? "" : ", once other streams have passed"));
  if (waits.empty()) {
    take_from(stats_.active_bytes, block->bytes);
    shelve_last();
    block->ticket = ticket;
    block->uses.clear();
    last_freed_ = block;
    return;
  }
  block->state = BlockState::kPending;
  block->ticket = ticket;
  pending_.push_back({block, std::move(waits)});
  if (++pending_since_drain_ >= kDrainEvery) drain_pending();
}

void PoolState::shelve_last() {
  if (Block* last = std::exchange(last_freed_, nullptr))
    store_.put(last, last->owner, last->ticket);
}

void PoolState::drain_pending() {
  pending_since_drain_ = 0;
  if (pending_.empty()) return;
  Progress progress(clock_);
  for (auto entry = pending_.begin(); entry != pending_.end();) {
    std::erase_if(entry->waits,
                  [&](const Ticket& wait) { return progress.passed(wait.first, wait.second); });
    if (!entry->waits.empty()) {
      ++entry;
      continue;
    }
    take_from(stats_.active_bytes, entry->block->bytes);
    store_.put(entry->block, entry->block->owner, entry->block->ticket);
    entry = pending_.erase(entry);
  }
}

void PoolState::record_use(tb_address address, StreamId stream) {
  Block* block = find_live(address, "record_use");
  auto& uses = block->uses;
  if (stream != block->owner && std::find(uses.begin(), uses.end(), stream) == uses.end())
    uses.push_back(stream);
}

BlockInfo PoolState::info(tb_address address) const {
  const Block* block = nullptr;
  if (const auto exact = live_.find(address); exact != live_.end()) {
    block = exact->second;
  } else if (const Location location = space_.resolve(address);
             location && location.pool == pool_) {
    block = store_.segments().at(location.base).first;
    while (block != nullptr && block->offset + block->bytes <= location.offset) block = block->next;
  }
  if (block == nullptr || block->state != BlockState::kLive)
    fail(TB_E_INVALID, "{:#x} lies in no live allocation of this device", address);
  return {block->address(), block->requested,       block->bytes,
          block->owner,     block->segment->handle, block->offset};
}

void PoolState::forget_stream(StreamId stream) {
  for (PendingBlock& entry : pending_)
    std::erase_if(entry.waits, [&](const Ticket& wait) { return wait.first == stream; });
  drain_pending();
  for (int kind = 0; kind < kPoolKinds; ++kind) {
    auto& shelves = store_.shelves(PoolKind(kind));
    for (size_t i = 0; i < shelves.size(); ++i) {
      if (shelves[i].stream != stream) continue;
      const std::vector<Block*> blocks(shelves[i].shelf.begin(), shelves[i].shelf.end());
      for (Block* block : blocks) store_.disown(block);
    }
    std::erase_if(shelves, [&](const auto& entry) { return entry.stream == stream; });
  }
}

}  // namespace ocltensor::runtime
