// The pooled, stream-ordered memory policy of one device. Independent of any driver, which it
// reaches through SegmentSource and StreamClock.
//
// Memory comes from the driver in segments, which are split into blocks; free neighbours coalesce.
// A free block belongs to the stream that it was allocated for. That stream may take it again at
// once, as its work runs in order; another stream only after the ticket of the time when it was
// freed has passed. Reserved memory stays within 1.5 times the peak in use: fully free segments are
// released before new ones are made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ocltensor/error.h"
#include "runtime/pool/address_space.h"
#include "tensor_backend/plugin.h"

namespace ocltensor::runtime {

// Identifies a stream of one device: a pointer or a counter. An id may be used again after
// Pool::forget_stream.
using StreamId = uint64_t;
inline constexpr StreamId kNoStream = ~uint64_t{0};  // not a valid stream
// The highest bit is that of private pools (Pool::open_private), which no stream has.
inline bool is_private(StreamId id) { return id >> 63 != 0 && id != kNoStream; }

// Makes driver buffers. Called with the pool's lock held, so it must not call the pool.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // Never null; throws Error(TB_E_OUT_OF_MEMORY) if the driver has no memory.
  virtual void* create(uint64_t bytes) = 0;
  virtual void destroy(void* segment) = 0;    // after all work that uses it; must not throw
  virtual uint64_t largest_allocation() = 0;  // asked once
};

// The progress of streams. A ticket counts the work enqueued so far; tickets of a stream only grow.
class StreamClock {
 public:
  virtual ~StreamClock() = default;
  // Ticket that covers all work enqueued on the stream so far. Called on every free with the pool's
  // lock held: a load of a counter, no driver call.
  virtual uint64_t current(StreamId stream) = 0;
  // Whether all work up to the ticket has finished. Must become true in time without a wait, so it
  // has to flush work that is only queued. Must not block nor call the pool (its lock is held).
  // Called only if a block of another stream is needed or a segment is to be released. True for
  // streams that no longer exist.
  virtual bool passed(StreamId stream, uint64_t ticket) = 0;
  // Flushes and waits. Called without the pool's lock; may throw (device lost).
  virtual void wait(StreamId stream, uint64_t ticket) = 0;
  // The streams that exist. Called with the pool's lock held, if memory of a private pool is freed.
  virtual std::vector<StreamId> streams() { return {}; }
};

enum : uint32_t {  // OCLTENSOR_DEBUG_ALLOCATOR
  kDebugProfiling = 1,
  kDebugAllocations = 2,
  kDebugRecycles = 4,
  kDebugReleases = 8,
  kDebugLargeOnly = 16,
  kDebugIsolated = 32  // a segment of the exact size for each allocation
};

struct PoolOptions {
  uint64_t recommended_bytes = 0;  // base of both ratios
  uint64_t physical_bytes = 0;     // the hard limit is clamped to it; 0: unknown
  double high_ratio = 1.7;         // 0..2 of recommended_bytes; 0: no hard limit
  double low_ratio = 1.4;          // 0..2, clamped to the high one; 0: no garbage collection
  // Which share of the recent peak may be fully free when more memory is made; 1: all. Free memory
  // beyond it is released, which may wait for the device; the default is for memory that the system
  // needs, too.
  double keep_free = 0.125;
  uint32_t debug = 0;                           // kDebug*
  std::function<void(const std::string&)> log;  // called with no lock held
};

struct BlockInfo {
  tb_address base;
  uint64_t requested;
  uint64_t bytes;  // size of the block: `requested` rounded up
  StreamId stream;
  void* segment;
  uint64_t offset;  // of base in the segment
};

class PoolState;

// Thread-safe. All errors are ocltensor::Error. allocate() and empty_cache() may wait for any
// stream of the device: the caller must not hold a lock that StreamClock::wait() or another
// thread's progress needs.
class Pool {
 public:
  Pool(AddressSpace& space, SegmentSource& source, StreamClock& clock, PoolOptions options);
  ~Pool();  // destroys all segments; no work may be using them
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // As in tb_memory_api. 0 bytes return address 0. Addresses are multiples of 512; the address one
  // past the end of an allocation is never the start of another one.
  tb_address allocate(uint64_t bytes, StreamId stream);
  void free(tb_address address, StreamId stream);
  void record_use(tb_address address, StreamId stream);
  BlockInfo info(tb_address address) const;  // any address inside a live block, else TB_E_INVALID

  void empty_cache();  // waits for pending frees, then releases every unoccupied segment
  // To be called when the stream is finished and goes away; its blocks become free for every
  // stream.
  void forget_stream(StreamId stream);

  // A private pool keeps what was allocated for it until it is closed: blocks that are freed serve
  // its own requests alone. It stands in for a stream: its id is a valid argument of allocate() and
  // free(). Other streams that free its blocks give them back when all streams' work has passed.
  StreamId open_private();
  // Free blocks become free for every stream when all work enqueued so far has passed; live ones
  // when they are freed.
  void close_private(StreamId id);
  // Until it is called with kNoStream, `stream` allocates from the private pool `to`, and blocks of
  // that pool that the stream frees serve the pool at once.
  void divert(StreamId stream, StreamId to);

  // A buffer over memory that somebody else owns, as one live allocation, which free() does not
  // take. It counts in no statistic and no limit.
  tb_address adopt(void* segment, uint64_t bytes, StreamId stream);
  // Waits for the streams that use it, and gives the buffer back to its source.
  void abandon(tb_address address);
  tb_address address_of(void* segment) const;  // of its first byte; TB_E_INVALID if it is gone

  void fill_stats(tb_memory_stats& stats) const;  // all but struct_size
  void reset_peak_stats();
  void reset_accumulated_stats();
  void count_pinned(int64_t delta);  // for pinned_bytes, which others allocate

  void set_watermarks(double high, double low);  // each 0..2; effective at once
  void set_fraction(double fraction);            // the high one alone
  // Bytes left up to the low limit; 0 above it, UINT64_MAX without a limit. A runtime may flush its
  // queues more often if this is small. Lock-free.
  uint64_t low_watermark_slack() const;

  void verify() const;  // walks all segments; TB_E_INTERNAL if an invariant is broken (tests)

 private:
  const std::unique_ptr<PoolState> state_;
};

}  // namespace ocltensor::runtime
