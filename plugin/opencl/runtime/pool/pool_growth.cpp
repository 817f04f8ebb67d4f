// Segments: makes and releases them, and handles lack of memory.
#include <algorithm>

#include "runtime/pool/pool_state.h"

namespace ocltensor::runtime {

namespace {

constexpr uint32_t kAllKinds = (1u << kPoolKinds) - 1;
constexpr uint64_t kCacheFloor = kMediumSegment;  // fully free memory that is no surplus

}  // namespace

PoolState::PoolState(Pool* pool, AddressSpace& space, SegmentSource& source, StreamClock& clock,
                     PoolOptions options)
    : pool_(pool),
      space_(space),
      source_(source),
      clock_(clock),
      options_(std::move(options)),
      largest_(source.largest_allocation()) {
  set_watermarks(options_.high_ratio, options_.low_ratio);
}

PoolState::~PoolState() {
  for (auto& [base, segment] : store_.segments()) {
    space_.release(base);
    source_.destroy(segment.handle);
  }
}

// If no block fits: makes a segment, after releasing cached memory beyond the budget.
Block* PoolState::grow(const Request& request, Lock& lock) {
  const uint64_t budget = cache_budget(request);
  release_surplus(budget);
  if (wait_for_surplus(request, budget, lock)) {
    if (Block* block = reuse(request)) return block;
    release_surplus(budget);
  }
  collect_garbage(request.bytes);
  if (Block* block = try_sizes(request)) return block;
  return climb_ladder(request, lock);
}

// How much memory may be fully free or pending when more is taken: a share of the recent peak, and
// nothing if the pool would exceed its bound.
uint64_t PoolState::cache_budget(const Request& request) const {
  const auto allocated = static_cast<uint64_t>(stats_.allocated_bytes.current);
  const uint64_t reserved =
      static_cast<uint64_t>(stats_.reserved_bytes.current) - store_.private_bytes();
  const uint64_t peak = std::max(recent_peak(), allocated + request.bytes);
  if (reserved + segment_bytes(request) > peak + peak / 2 + kCacheFloor) return 0;
  if (options_.keep_free >= 1) return UINT64_MAX;
  const auto kept = static_cast<double>(recent_peak()) * options_.keep_free;
  return std::max(kCacheFloor, static_cast<uint64_t>(kept));
}

void PoolState::release_surplus(uint64_t budget) {
  if (store_.cached_bytes() > budget)
    release_cached(store_.cached_bytes() - budget, kAllKinds, "too much cached");
}

// Waits for streams that hold more than the budget, because a host that runs far ahead would
// otherwise reserve memory without bound. Returns whether it waited.
bool PoolState::wait_for_surplus(const Request& request, uint64_t budget, Lock& lock) {
  if (budget != 0 && store_.cached_bytes() + pending_bytes() <= budget) return false;
  std::vector<Ticket> tickets;
  for (const PendingBlock& entry : pending_)
    tickets.insert(tickets.end(), entry.waits.begin(), entry.waits.end());
  for (const PoolKind kind : kAllPools)
    for (const auto& [stream, shelf] : store_.shelves(kind))
      for (const Block* block : shelf)
        if (block->fills_segment() || (budget == 0 && stream != request.stream))
          tickets.emplace_back(stream, block->ticket);
  return wait_for(tickets, lock);
}

Block* PoolState::climb_ladder(const Request& request, Lock& lock) {
  ++stats_.allocation_retries;
  if (debug(kDebugProfiling, request.kind))
    lines.push_back(fmt::format(
        "no room for {}: allocated {}, reserved {}, limit {}", format_bytes(request.asked),
        format_bytes(stats_.allocated_bytes.current), format_bytes(stats_.reserved_bytes.current),
        high_limit_ == 0 ? "none" : format_bytes(high_limit_)));
  Progress progress(clock_);
  adopt_passed(kNoStream, progress);
  for (const uint32_t kinds : {1u << request.kind, kAllKinds}) {
    // A driver's refusal does not say how much memory it lacks: release everything.
    const auto reserved = static_cast<uint64_t>(stats_.reserved_bytes.current);
    const bool limited = high_limit_ != 0 && reserved + segment_bytes(request) > high_limit_;
    const uint64_t wanted = limited ? reserved + segment_bytes(request) - high_limit_ : UINT64_MAX;
    if (release_cached(wanted, kinds, "out of memory") == 0) continue;
    if (Block* block = try_sizes(request)) return block;
  }
  wait_for_frees(lock);
  if (Block* block = reuse(request)) return block;
  release_cached(UINT64_MAX, kAllKinds, "out of memory, after waiting");
  if (Block* block = try_sizes(request)) return block;
  fail_out_of_memory(request);
}

// The smallest size of a segment for a request.
uint64_t PoolState::segment_bytes(const Request& request) const {
  return std::min(round_up(request.bytes, kSegmentGranule), largest_);
}

Block* PoolState::try_sizes(const Request& request) {
  const uint64_t exact = segment_bytes(request);
  uint64_t preferred = request.kind == kSmall    ? kSmallSegment
                       : request.kind == kMedium ? kMediumSegment
                                                 : exact;
  preferred = std::min(preferred, largest_);
  if (Block* block = try_segment(preferred, request.kind, preferred)) return block;
  return exact < preferred ? try_segment(exact, request.kind, exact) : nullptr;
}

// Makes a driver buffer that ends where the allocation ends, so that a checker detects accesses
// beyond the end.
Block* PoolState::isolated(const Request& request) {
  drain_pending();
  release_surplus(kCacheFloor);
  return try_segment(request.bytes, request.kind, request.asked);
}

// Null if the limit or the driver refuses. `driver_bytes`: the size requested from the driver.
Block* PoolState::try_segment(uint64_t bytes, PoolKind kind, uint64_t driver_bytes) {
  const auto reserved = static_cast<uint64_t>(stats_.reserved_bytes.current);
  if (high_limit_ != 0 && (reserved > high_limit_ || bytes > high_limit_ - reserved)) {
    refusal_ = "the limit is reached";
    return nullptr;
  }
  void* handle = nullptr;
  try {
    handle = source_.create(driver_bytes);
    const tb_address base = space_.acquire(bytes, handle, pool_);
    add_to(stats_.reserved_bytes, bytes);
    add_to(stats_.segments, 1);
    publish_slack();
    if (debug(kDebugProfiling, kind))
      lines.push_back(fmt::format("new segment of {} at {:#x}; reserved {}", format_bytes(bytes),
                                  base, format_bytes(stats_.reserved_bytes.current)));
    return store_.add_segment(base, bytes, handle, kind);
  } catch (const Error& error) {
    if (handle != nullptr) source_.destroy(handle);
    if (error.status() != TB_E_OUT_OF_MEMORY) throw;
    refusal_ = error.what();
    return nullptr;
  }
}

// Above the low watermark releases cached segments before more memory is taken.
void PoolState::collect_garbage(uint64_t coming) {
  const uint64_t total = static_cast<uint64_t>(stats_.reserved_bytes.current) + coming;
  if (low_limit_ == 0 || total <= low_limit_ || store_.cached_bytes() == 0) return;
  release_cached(total - low_limit_, kAllKinds, "above the low watermark");
}

// To be called after a limit was lowered.
void PoolState::shrink_to_limit() {
  const auto reserved = static_cast<uint64_t>(stats_.reserved_bytes.current);
  if (high_limit_ != 0 && reserved > high_limit_)
    release_cached(reserved - high_limit_, kAllKinds, "above the new limit");
}

// Fully free segments that no stream uses any more, longest unused first.
std::vector<Segment*> PoolState::cached_segments(uint32_t kinds) {
  std::vector<Segment*> found;
  Progress progress(clock_);
  for (auto& [base, segment] : store_.segments()) {
    const Block& block = *segment.first;
    if ((kinds >> segment.kind & 1) != 0 && block.state == BlockState::kFree &&
        block.fills_segment() && progress.passed(block.owner, block.ticket))
      found.push_back(&segment);
  }
  std::sort(found.begin(), found.end(),
            [](const Segment* a, const Segment* b) { return a->last_use < b->last_use; });
  return found;
}

// Returns how many bytes went back; stops at `wanted`.
uint64_t PoolState::release_cached(uint64_t wanted, uint32_t kinds, const char* why) {
  uint64_t released = 0;
  for (Segment* segment : cached_segments(kinds)) {
    if (released >= wanted) break;
    released += segment->bytes;
    release_segment(segment, why);
  }
  publish_slack();
  return released;
}

void PoolState::release_segment(Segment* segment, const char* why) {
  if (debug(kDebugReleases, segment->kind))
    lines.push_back(fmt::format("released the segment of {} at {:#x}: {}",
                                format_bytes(segment->bytes), segment->base, why));
  const tb_address base = segment->base;
  void* handle = segment->handle;
  take_from(stats_.reserved_bytes, segment->bytes);
  take_from(stats_.segments, 1);
  store_.remove_segment(segment);
  space_.release(base);
  source_.destroy(handle);
}

void PoolState::empty_cache(Lock& lock) {
  wait_for_frees(lock);
  release_cached(UINT64_MAX, kAllKinds, "empty_cache");
}

// Waits for everything freed so far, which then belongs to no stream.
void PoolState::wait_for_frees(Lock& lock) {
  std::vector<Ticket> tickets;
  for (const PendingBlock& entry : pending_) {
    tickets.insert(tickets.end(), entry.waits.begin(), entry.waits.end());
    tickets.emplace_back(entry.block->owner, entry.block->ticket);
  }
  for (const PoolKind kind : kAllPools)
    for (const auto& [stream, shelf] : store_.shelves(kind))
      for (const Block* block : shelf) tickets.emplace_back(stream, block->ticket);
  wait_for(tickets, lock);
}

// Waits, without the lock, for the highest ticket of each stream, then takes the freed blocks back.
// Returns false if there was nothing to wait for.
bool PoolState::wait_for(const std::vector<Ticket>& tickets, Lock& lock) {
  std::map<StreamId, uint64_t> highest;
  for (const auto& [stream, ticket] : tickets) highest[stream] = std::max(highest[stream], ticket);
  highest.erase(kNoStream);
  std::erase_if(highest, [&](const auto& entry) {
    return is_private(entry.first) || clock_.passed(entry.first, entry.second);
  });
  const bool blocked = !highest.empty();
  if (blocked) {
    struct Relock {  // also if a wait throws, because the caller's guard expects the lock
      Lock& lock;
      ~Relock() { lock.lock(); }
    };
    lock.unlock();
    Relock relock{lock};
    for (const auto& [stream, ticket] : highest) clock_.wait(stream, ticket);
  }
  drain_pending();
  Progress progress(clock_);
  adopt_passed(kNoStream, progress);
  return blocked;
}

void PoolState::fail_too_large(uint64_t bytes) {
  ++stats_.out_of_memory_errors;
  fail(TB_E_OUT_OF_MEMORY,
       "tried to allocate {} ({} bytes) in one piece; the largest single allocation of this device "
       "is {}. Use a smaller batch or split the tensor.",
       format_bytes(bytes), bytes, format_bytes(largest_));
}

void PoolState::fail_out_of_memory(const Request& request) {
  ++stats_.out_of_memory_errors;
  const auto allocated = static_cast<uint64_t>(stats_.allocated_bytes.current);
  const auto active = static_cast<uint64_t>(stats_.active_bytes.current);
  const auto reserved = static_cast<uint64_t>(stats_.reserved_bytes.current);
  // The error names the setting by which the limit was set.
  const char* knob =
      fraction_set_ ? "set_per_process_memory_fraction" : "OCLTENSOR_HIGH_WATERMARK_RATIO";
  fail(TB_E_OUT_OF_MEMORY,
       "out of device memory: tried to allocate {}; allocated {}, cached {}, other (pinned host "
       "memory) {}, limit {}, recommended maximum {}, largest single allocation {}; cause: {}. Use "
       "a smaller batch, free tensors and call empty_cache(), or raise {} (now {:.4g}; 0 removes "
       "the "
       "limit, and the system may run out of memory).",
       format_bytes(request.asked), format_bytes(allocated), format_bytes(reserved - active),
       format_bytes(static_cast<uint64_t>(stats_.pinned_bytes.current)),
       high_limit_ == 0 ? "none" : format_bytes(high_limit_),
       format_bytes(options_.recommended_bytes), format_bytes(largest_), refusal_, knob,
       options_.high_ratio);
}

}  // namespace ocltensor::runtime
