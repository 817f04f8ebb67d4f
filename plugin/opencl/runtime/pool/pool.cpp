// The pool's public functions, which take its lock.
#include "pool.h"

#include "runtime/pool/pool_state.h"

namespace ocltensor::runtime {

// Holds the pool's lock, and writes the debug lines after releasing it: the log function belongs to
// the host and may do anything.
class PoolGuard {
 public:
  // `keeps_last`: for what may find the block that was freed last beside the shelves.
  explicit PoolGuard(PoolState& state, bool keeps_last = false) : state_(state), lock(state.mutex) {
    if (!keeps_last) state.shelve_last();
  }
  ~PoolGuard() {
    std::vector<std::string> lines;
    if (lock.owns_lock() && !state_.lines.empty()) lines.swap(state_.lines);
    if (lock.owns_lock()) lock.unlock();
    if (!state_.options().log) return;
    for (const std::string& line : lines) {
      try {
        state_.options().log(line);
      } catch (...) {  // a failing log must not fail an allocation
      }
    }
  }
  PoolGuard(const PoolGuard&) = delete;
  PoolGuard& operator=(const PoolGuard&) = delete;

 private:
  PoolState& state_;

 public:
  PoolState::Lock lock;
};

Pool::Pool(AddressSpace& space, SegmentSource& source, StreamClock& clock, PoolOptions options)
    : state_(std::make_unique<PoolState>(this, space, source, clock, std::move(options))) {
  PoolGuard guard(*state_);  // writes what the constructor logged
}

Pool::~Pool() = default;

tb_address Pool::allocate(uint64_t bytes, StreamId stream) {
  if (bytes == 0) return 0;
  PoolGuard guard(*state_, true);
  return state_->allocate(bytes, stream, guard.lock);
}

void Pool::free(tb_address address, StreamId stream) {
  if (address == 0) return;
  PoolGuard guard(*state_, true);
  state_->free(address, stream);
}

void Pool::record_use(tb_address address, StreamId stream) {
  if (address == 0) return;
  PoolGuard guard(*state_);
  state_->record_use(address, stream);
}

BlockInfo Pool::info(tb_address address) const {
  PoolGuard guard(*state_);
  return state_->info(address);
}

void Pool::empty_cache() {
  PoolGuard guard(*state_);
  state_->empty_cache(guard.lock);
}

void Pool::forget_stream(StreamId stream) {
  PoolGuard guard(*state_);
  state_->forget_stream(stream);
}

StreamId Pool::open_private() {
  PoolGuard guard(*state_);
  return state_->open_private();
}

void Pool::close_private(StreamId id) {
  PoolGuard guard(*state_);
  state_->close_private(id);
}

void Pool::divert(StreamId stream, StreamId to) {
  PoolGuard guard(*state_);
  state_->divert(stream, to);
}

tb_address Pool::adopt(void* segment, uint64_t bytes, StreamId stream) {
  PoolGuard guard(*state_);
  return state_->adopt(segment, bytes, stream);
}

void Pool::abandon(tb_address address) {
  PoolGuard guard(*state_);
  state_->abandon(address, guard.lock);
}

tb_address Pool::address_of(void* segment) const {
  PoolGuard guard(*state_);
  return state_->address_of(segment);
}

void Pool::fill_stats(tb_memory_stats& stats) const {
  PoolGuard guard(*state_);
  state_->drain_pending();
  state_->fill_stats(stats);
}

void Pool::reset_peak_stats() {
  PoolGuard guard(*state_);
  state_->reset_peaks();
}

void Pool::reset_accumulated_stats() {
  PoolGuard guard(*state_);
  state_->reset_accumulated();
}

void Pool::count_pinned(int64_t delta) {
  PoolGuard guard(*state_);
  state_->count_pinned(delta);
}

void Pool::set_watermarks(double high, double low) {
  PoolGuard guard(*state_);
  state_->set_watermarks(high, low);
  state_->shrink_to_limit();
}

void Pool::set_fraction(double fraction) {
  PoolGuard guard(*state_);
  state_->set_fraction(fraction);
  state_->shrink_to_limit();
}

uint64_t Pool::low_watermark_slack() const { return state_->low_watermark_slack(); }

void Pool::verify() const {
  PoolGuard guard(*state_);
  state_->verify();
}

}  // namespace ocltensor::runtime
