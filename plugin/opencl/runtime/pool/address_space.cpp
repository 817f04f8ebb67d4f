// Reserves the address range, and allocates its slots by best fit with coalescing.
#include "address_space.h"

#include <sys/mman.h>

#include "ocltensor/error.h"

namespace ocltensor::runtime {

namespace {

constexpr uint64_t kSmallestRange = uint64_t{64} << 20;

void* reserve(uint64_t bytes, int protection) {
  void* memory =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

AddressSpace::AddressSpace(uint64_t bytes) {
  bytes = bytes / kSlotBytes * kSlotBytes;
  void* range = nullptr;
  // One slot more than is used, so that the base can be rounded up to a slot boundary.
  for (; bytes >= kSmallestRange; bytes = bytes / 2 / kSlotBytes * kSlotBytes)
    if ((range = reserve(bytes + kSlotBytes, PROT_NONE)) != nullptr) break;
  if (range == nullptr)
    fail(TB_E_OUT_OF_MEMORY,
         "cannot reserve even {} MiB of address space for device addresses; raise the limit on "
         "virtual memory (ulimit -v)",
         kSmallestRange >> 20);
  reserved_at_ = range;
  bytes_ = bytes;
  const auto start = reinterpret_cast<uintptr_t>(range);
  base_ = (start + kSlotBytes - 1) / kSlotBytes * kSlotBytes;
  const uint64_t slots = bytes >> kSlotShift;
  // Pages of zeros are valid null pointers, and only pages that are written take memory.
  void* table = reserve(slots * sizeof(*table_), PROT_READ | PROT_WRITE);
  if (table == nullptr) {
    munmap(range, bytes + kSlotBytes);
    fail(TB_E_OUT_OF_MEMORY, "cannot map the table of device addresses ({} entries)", slots);
  }
  table_ = static_cast<std::atomic<Record*>*>(table);
  insert_range(1, slots - 1);  // slot 0 guards the addresses before the first segment
}

AddressSpace::~AddressSpace() {
  munmap(table_, (bytes_ >> kSlotShift) * sizeof(*table_));
  munmap(reserved_at_, bytes_ + kSlotBytes);
}

tb_address AddressSpace::acquire(uint64_t bytes, void* segment, Pool* pool) {
  std::lock_guard lock(mutex_);
  if (bytes > bytes_) fail(TB_E_OUT_OF_MEMORY, "no device addresses for {} bytes", bytes);
  const uint64_t slots = ((bytes + kSlotBytes - 1) >> kSlotShift) + 1;
  const auto found = by_length_.lower_bound({slots, 0});
  if (found == by_length_.end())
    fail(TB_E_OUT_OF_MEMORY,
         "no range of {} bytes is left in the {} GiB of device addresses; free some memory", bytes,
         bytes_ >> 30);
  const auto [length, first] = *found;
  if (spare_.empty()) spare_.push_back(&records_.emplace_back());
  Record* record = spare_.back();
  erase_range(first, length);
  if (length > slots) insert_range(first + slots, length - slots);
  spare_.pop_back();

  const tb_address base = base_ + (first << kSlotShift);
  record->base.store(base, std::memory_order_relaxed);
  record->bytes.store(bytes, std::memory_order_relaxed);
  record->segment.store(segment, std::memory_order_relaxed);
  record->pool.store(pool, std::memory_order_relaxed);
  record->slots = slots;
  for (uint64_t i = first; i < first + slots; ++i)
    table_[i].store(record, std::memory_order_release);
  return base;
}

void AddressSpace::release(tb_address base) {
  std::lock_guard lock(mutex_);
  uint64_t first = (base - base_) >> kSlotShift;
  Record* record = base - base_ < bytes_ ? table_[first].load(std::memory_order_relaxed) : nullptr;
  if (record == nullptr || record->base.load(std::memory_order_relaxed) != base)
    fail(TB_E_INTERNAL, "address {:#x} is not the base of a segment", base);
  spare_.reserve(spare_.size() + 1);
  uint64_t count = record->slots;
  for (uint64_t i = first; i < first + count; ++i)
    table_[i].store(nullptr, std::memory_order_release);
  record->segment.store(nullptr, std::memory_order_relaxed);
  spare_.push_back(record);

  auto after = by_start_.lower_bound(first);
  if (after != by_start_.end() && after->first == first + count) {
    const auto [start, length] = *after;
    count += length;
    erase_range(start, length);
  }
  auto before = by_start_.lower_bound(first);
  if (before != by_start_.begin() && (--before)->first + before->second == first) {
    const auto [start, length] = *before;
    first = start;
    count += length;
    erase_range(start, length);
  }
  insert_range(first, count);
}

uint64_t AddressSpace::free_slots() const {
  std::lock_guard lock(mutex_);
  uint64_t slots = 0;
  for (const auto& [first, count] : by_start_) slots += count;
  return slots;
}

size_t AddressSpace::free_ranges() const {
  std::lock_guard lock(mutex_);
  return by_start_.size();
}

void AddressSpace::insert_range(uint64_t first, uint64_t count) {
  by_start_.emplace(first, count);
  by_length_.emplace(count, first);
}

void AddressSpace::erase_range(uint64_t first, uint64_t count) {
  by_start_.erase(first);
  by_length_.erase({count, first});
}

AddressSpace& address_space() {
  // Leaked: addresses stay unreadable to the end.
  static AddressSpace& space = *new AddressSpace;
  return space;
}

}  // namespace ocltensor::runtime
