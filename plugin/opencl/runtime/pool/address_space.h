// Unique device addresses: one reserved, unreadable range of the process, given to segments.
//
// A host does pointer arithmetic on device addresses, but a driver's buffer has no address. So
// every segment (one driver buffer) gets a part of a PROT_NONE range: a stray host access faults at
// once, and one load from a flat table turns an address into (segment, offset). Slots are 2 MiB; at
// least one slot after each segment is its guard, which still resolves to that segment.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tensor_backend/plugin.h"

namespace ocltensor::runtime {

class Pool;

// The segment that an address belongs to.
struct Location {
  void* segment;    // the driver's buffer, as SegmentSource::create returned it; null: not ours
  Pool* pool;       // its owner
  tb_address base;  // address of the segment's first byte
  uint64_t offset;  // of the address in the segment; >= bytes within the guard
  uint64_t bytes;   // size of the segment
  explicit operator bool() const { return segment != nullptr; }
};

// One per process, shared by the pools of all devices. Thread-safe; resolve() takes no lock.
class AddressSpace {
 public:
  static constexpr uint32_t kSlotShift = 21;
  static constexpr uint64_t kSlotBytes = uint64_t{1} << kSlotShift;
  static constexpr uint64_t kDefaultBytes = uint64_t{1} << 40;

  // Reserves `bytes`, or if that fails a half, a quarter, ... of it; TB_E_OUT_OF_MEMORY below 64
  // MiB.
  explicit AddressSpace(uint64_t bytes = kDefaultBytes);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Gives a segment its addresses (best fit). TB_E_OUT_OF_MEMORY if no free range is long enough.
  tb_address acquire(uint64_t bytes, void* segment, Pool* pool);
  // `base` is the result of acquire(); its addresses may be used again.
  void release(tb_address base);

  // Resolves any address inside a segment or its guard. Lock-free. A stale address causes no crash,
  // but may resolve to another segment or to none.
  Location resolve(tb_address address) const {
    const uint64_t distance = address - base_;
    if (distance >= bytes_) return {};
    const Record* record = table_[distance >> kSlotShift].load(std::memory_order_acquire);
    if (record == nullptr) return {};
    const tb_address base = record->base.load(std::memory_order_relaxed);
    return {record->segment.load(std::memory_order_relaxed),
            record->pool.load(std::memory_order_relaxed), base, address - base,
            record->bytes.load(std::memory_order_relaxed)};
  }

  tb_address base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t free_slots() const;
  size_t free_ranges() const;  // 1 if all of it has coalesced

 private:
  // Never deallocated, only reused, so that a reader with a stale address reads valid memory.
  struct Record {
    std::atomic<tb_address> base{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<void*> segment{nullptr};
    std::atomic<Pool*> pool{nullptr};
    uint64_t slots = 0;  // including the guard; under mutex_
  };
  void insert_range(uint64_t first, uint64_t count);
  void erase_range(uint64_t first, uint64_t count);

  void* reserved_at_ = nullptr;  // the result of mmap(), one slot longer than bytes_
  tb_address base_ = 0;
  uint64_t bytes_ = 0;
  std::atomic<Record*>* table_ = nullptr;  // one entry per slot
  mutable std::mutex mutex_;               // guards what follows
  std::deque<Record> records_;
  std::vector<Record*> spare_;
  std::map<uint64_t, uint64_t> by_start_;              // first slot -> count, of free ranges
  std::set<std::pair<uint64_t, uint64_t>> by_length_;  // (count, first slot)
};

// The process's one address space, of all devices.
AddressSpace& address_space();

}  // namespace ocltensor::runtime
