// The pool's state and the functions that its lock protects; Pool (pool.h) takes the lock and calls
// them.
//
// pool.cpp: the front; pool_private.cpp: private pools; pool_imports.cpp: memory of others;
// pool_reuse.cpp: allocation from and return to the shelves; pool_growth.cpp: segments, garbage
// collection and the out-of-memory ladder; pool_stats.cpp: figures, limits, verification.
#pragma once

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "runtime/pool/pool_blocks.h"

namespace ocltensor::runtime {

using Ticket = std::pair<StreamId, uint64_t>;

// The streams' clock, for which a private pool is a stream that stands still until it is closed.
class PoolClock final : public StreamClock {
 public:
  explicit PoolClock(StreamClock& streams) : streams_(streams) {}
  uint64_t current(StreamId id) override {
    return is_private(id) || id == kNoStream ? 0 : streams_.current(id);
  }
  bool passed(StreamId id, uint64_t ticket) override {
    return is_private(id) ? !open_.contains(id) : streams_.passed(id, ticket);
  }
  void wait(StreamId id, uint64_t ticket) override {
    if (!is_private(id)) streams_.wait(id, ticket);
  }
  std::vector<StreamId> streams() override { return streams_.streams(); }
  StreamId open() { return *open_.insert((uint64_t{1} << 63) + opened_++).first; }
  void close(StreamId id) { open_.erase(id); }
  bool is_open(StreamId id) const { return open_.contains(id); }

 private:
  StreamClock& streams_;
  std::set<StreamId> open_;
  uint64_t opened_ = 0;
};

// Remembers the clock's answers during a search, so that each stream is queried only a few times.
class Progress {
 public:
  explicit Progress(StreamClock& clock) : clock_(clock) {}
  bool passed(StreamId stream, uint64_t ticket);

 private:
  struct Known {
    bool any_passed = false;
    uint64_t passed = 0;            // up to this ticket it has passed
    uint64_t blocked = UINT64_MAX;  // from this ticket on it has not passed
  };
  StreamClock& clock_;
  std::map<StreamId, Known> known_;
};

// A freed block that streams other than its own may still use.
struct PendingBlock {
  Block* block;
  std::vector<Ticket> waits;
};

class PoolState {
 public:
  using Lock = std::unique_lock<std::mutex>;

  PoolState(Pool* pool, AddressSpace& space, SegmentSource& source, StreamClock& clock,
            PoolOptions options);
  ~PoolState();

  // pool_reuse.cpp
  tb_address allocate(uint64_t bytes, StreamId stream, Lock& lock);
  void free(tb_address address, StreamId stream);
  void record_use(tb_address address, StreamId stream);
  BlockInfo info(tb_address address) const;
  void forget_stream(StreamId stream);
  void drain_pending();
  void shelve_last();

  // pool_private.cpp
  StreamId open_private() { return clock_.open(); }
  void close_private(StreamId id);
  void divert(StreamId stream, StreamId to);

  // pool_imports.cpp
  tb_address adopt(void* handle, uint64_t bytes, StreamId stream);
  void abandon(tb_address address, Lock& lock);
  tb_address address_of(void* handle) const;

  // pool_growth.cpp
  void empty_cache(Lock& lock);
  void shrink_to_limit();

  // pool_stats.cpp
  void fill_stats(tb_memory_stats& stats) const;
  void reset_peaks();
  void reset_accumulated();
  void count_pinned(int64_t delta);
  void set_watermarks(double high, double low);
  void set_fraction(double fraction);  // the high one alone
  uint64_t low_watermark_slack() const { return slack_.load(std::memory_order_relaxed); }
  void verify() const;

  std::mutex mutex;
  std::vector<std::string> lines;  // of the debug log, written once the lock is released
  const PoolOptions& options() const { return options_; }

 private:
  struct Request {
    uint64_t asked;
    uint64_t bytes;  // of the block
    PoolKind kind;
    StreamId stream;
  };

  Block* reuse(const Request& request);
  Block* take_from_others(const Request& request, Progress& progress);
  void adopt_passed(StreamId except, Progress& progress);
  tb_address hand_out(Block* block, const Request& request);
  Block* find_live(tb_address address, const char* what) const;
  // The private pool from which the stream allocates; the stream itself if there is none.
  StreamId diverted(StreamId stream) const;
  std::vector<Ticket> all_streams();  // and all work enqueued on them so far
  void leave_private(Block* block, StreamId stream);

  Block* grow(const Request& request, Lock& lock);
  Block* climb_ladder(const Request& request, Lock& lock);
  uint64_t segment_bytes(const Request& request) const;
  Block* try_sizes(const Request& request);
  Block* isolated(const Request& request);
  Block* try_segment(uint64_t bytes, PoolKind kind, uint64_t driver_bytes);
  uint64_t cache_budget(const Request& request) const;
  void release_surplus(uint64_t budget);
  bool wait_for_surplus(const Request& request, uint64_t budget, Lock& lock);
  void collect_garbage(uint64_t coming);
  uint64_t release_cached(uint64_t wanted, uint32_t kinds, const char* why);
  std::vector<Segment*> cached_segments(uint32_t kinds);
  void release_segment(Segment* segment, const char* why);
  void wait_for_frees(Lock& lock);
  bool wait_for(const std::vector<Ticket>& tickets, Lock& lock);
  [[noreturn]] void fail_out_of_memory(const Request& request);
  [[noreturn]] void fail_too_large(uint64_t bytes);

  void count_allocated(const Block& block);
  uint64_t pending_bytes() const {
    return static_cast<uint64_t>(stats_.active_bytes.current - stats_.allocated_bytes.current);
  }
  uint64_t recent_peak() const { return std::max(window_peak_[0], window_peak_[1]); }
  bool debug(uint32_t bit, PoolKind kind) const {
    return (options_.debug & bit) != 0 &&
           (kind != kSmall || (options_.debug & kDebugLargeOnly) == 0);
  }
  void publish_slack();

  Pool* pool_;
  AddressSpace& space_;
  SegmentSource& source_;
  PoolClock clock_;
  std::vector<std::pair<StreamId, StreamId>> diverted_;  // streams and their private pools
  PoolOptions options_;
  const uint64_t largest_;  // the device's largest allocation
  tb_memory_stats stats_{};
  BlockStore store_;
  std::unordered_map<tb_address, Block*> live_;
  // The block that was freed last, not yet on a shelf: the next request is often for as much. Every
  // other operation of the pool puts it there first.
  Block* last_freed_ = nullptr;
  std::list<PendingBlock> pending_;
  uint64_t pending_since_drain_ = 0;
  bool fraction_set_ = false;  // the high ratio was set by set_fraction()
  uint64_t high_limit_ = 0;
  uint64_t low_limit_ = 0;
  std::atomic<uint64_t> slack_{UINT64_MAX};  // bytes up to the low limit
  uint64_t window_peak_[2] = {0, 0};         // peak of allocated bytes: last, current window
  uint64_t window_count_ = 0;
  std::string refusal_;  // why the last segment could not be made
};

// A readable size: "1.50 GiB".
std::string format_bytes(uint64_t bytes);

inline void add_to(tb_memory_stat& stat, uint64_t amount) {
  stat.current += static_cast<int64_t>(amount);
  stat.allocated += static_cast<int64_t>(amount);
  stat.peak = std::max(stat.peak, stat.current);
}

inline void take_from(tb_memory_stat& stat, uint64_t amount) {
  stat.current -= static_cast<int64_t>(amount);
  stat.freed += static_cast<int64_t>(amount);
}

}  // namespace ocltensor::runtime
