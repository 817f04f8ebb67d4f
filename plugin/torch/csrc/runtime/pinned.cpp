// The host allocator: page-locked memory, cached until the streams that used it have finished.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <mutex>

#include "allocator.h"
#include "stream.h"

namespace torch_ocl {
namespace {

struct Block {
  c10::DeviceIndex device;  // whose driver pinned it
  size_t capacity;
  bool in_use = false;
  struct User {
    c10::Stream stream;
    tb_event done;  // recorded after the stream's last copy that uses the block
  };
  std::vector<User> users{};
};

// Rounded up to powers of two, so that cached memory fits other sizes, too; large sizes to whole
// MiB.
size_t rounded_up(size_t bytes) {
  constexpr size_t kMiB = size_t{1} << 20;
  if (bytes <= kMiB) return std::bit_ceil(std::max<size_t>(bytes, 512));
  return (bytes + kMiB - 1) / kMiB * kMiB;
}

// One mutex guards everything. Calling the plugin while holding it is safe: the plugin calls back
// for logs only.
class PinnedPool {
 public:
  void* allocate(size_t bytes) {
    const std::lock_guard lock(mutex_);
    reclaim();
    const c10::DeviceIndex device = checked_index(current_device());
    const size_t capacity = rounded_up(bytes);
    const auto found = cache_.lower_bound({device, capacity});
    if (found != cache_.end() && found->first.first == device &&
        found->first.second <= capacity + capacity / 4) {
      void* memory = found->second;
      cache_.erase(found);
      return use(memory);
    }
    void* memory = nullptr;
    const auto make = api().memory->allocate_host;
    ocltensor::ErrorBuffer error;
    tb_status status = make(device, capacity, &memory, error.get());
    if (status == TB_E_OUT_OF_MEMORY) {  // once more, after the cache is released
      release_cache();
      status = make(device, capacity, &memory, error.get());
    }
    if (status != TB_OK) raise(status, "allocate pinned memory", error.text());
    blocks_.emplace(memory, Block{device, capacity});
    grow(stats_.allocations, stats_.allocated_bytes, capacity);
    ++stats_.num_host_alloc;
    return use(memory);
  }

  void free(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto it = blocks_.find(memory);
    if (it == blocks_.end()) return;
    Block& block = it->second;
    block.in_use = false;
    stats_.active_requests.decrease(1);
    stats_.active_bytes.decrease(block.capacity);
    Pending pending{memory, {}};
    for (const Block::User& user : std::exchange(block.users, {}))
      pending.events.push_back(user.done);
    if (pending.events.empty())
      cache_.emplace(Key{block.device, block.capacity}, memory);
    else
      pending_.push_back(std::move(pending));
  }

  // Records an event now, right after the copy, not when the block is freed: by then the stream may
  // have received other work, for which the memory need not wait.
  bool record(const void* memory, const c10::Stream& stream) {
    const std::lock_guard lock(mutex_);
    Block* block = find(memory);
    if (block == nullptr) return false;
    const tb_event_api& events = *api().event;
    auto user = user_of(*block, stream);
    if (user == block->users.end()) {
      tb_event event = nullptr;
      call_api("new event", events.create, stream.device_index(), 0u, &event);
      user = block->users.insert(user, {stream, event});
    }
    call_api("record event", events.record, user->done, handle_of(stream));
    return true;
  }

  bool has_user(const void* memory, const c10::Stream& stream) {
    const std::lock_guard lock(mutex_);
    Block* block = find(memory);
    return block != nullptr && user_of(*block, stream) != block->users.end();
  }

  void empty_cache() {
    const std::lock_guard lock(mutex_);
    reclaim();
    release_cache();
  }

  at::HostStats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset(void (c10::CachingAllocator::Stat::*how)()) {
    const std::lock_guard lock(mutex_);
    for (auto* stat : {&stats_.active_requests, &stats_.active_bytes, &stats_.allocations,
                       &stats_.allocated_bytes})
      (stat->*how)();
  }

 private:
  using Key = std::pair<c10::DeviceIndex, size_t>;
  struct Pending {
    void* memory;
    std::vector<tb_event> events;
  };

  // The block in use that contains an address; nullptr: none.
  Block* find(const void* memory) {
    auto it = blocks_.upper_bound(const_cast<void*>(memory));
    if (it == blocks_.begin()) return nullptr;
    --it;
    const auto offset = static_cast<const char*>(memory) - static_cast<const char*>(it->first);
    const bool inside = static_cast<size_t>(offset) < it->second.capacity;
    return inside && it->second.in_use ? &it->second : nullptr;
  }

  static std::vector<Block::User>::iterator user_of(Block& block, const c10::Stream& stream) {
    return std::find_if(block.users.begin(), block.users.end(),
                        [&](const Block::User& user) { return user.stream == stream; });
  }

  static void grow(c10::CachingAllocator::Stat& count, c10::CachingAllocator::Stat& bytes,
                   size_t by) {
    count.increase(1);
    bytes.increase(by);
  }

  void* use(void* memory) {
    Block& block = blocks_.at(memory);
    block.in_use = true;
    grow(stats_.active_requests, stats_.active_bytes, block.capacity);
    return memory;
  }

  // Moves freed memory whose streams have finished to the cache. A failed stream counts as
  // finished.
  void reclaim() {
    const tb_event_api* events = pending_.empty() ? nullptr : api().event;
    for (auto it = pending_.begin(); it != pending_.end();) {
      const bool busy = std::any_of(it->events.begin(), it->events.end(), [&](tb_event event) {
        return events->query(event, nullptr) == TB_NOT_READY;
      });
      if (busy) {
        ++it;
        continue;
      }
      for (tb_event event : it->events) call_api_noexcept("destroy event", events->destroy, event);
      const Block& block = blocks_.at(it->memory);
      cache_.emplace(Key{block.device, block.capacity}, it->memory);
      it = pending_.erase(it);
    }
  }

  void release_cache() {
    for (const auto& [key, memory] : cache_) {
      call_api_noexcept("free pinned memory", api().memory->free_host, memory);
      blocks_.erase(memory);
      stats_.allocations.decrease(1);
      stats_.allocated_bytes.decrease(key.second);
      ++stats_.num_host_free;
    }
    cache_.clear();
  }

  std::mutex mutex_;
  std::map<void*, Block> blocks_;    // all, by their start
  std::multimap<Key, void*> cache_;  // free, and no stream uses them
  std::deque<Pending> pending_;      // free, but a stream may still use them
  at::HostStats stats_;
};

PinnedPool& pool() {
  static auto& instance = *new PinnedPool;  // leaked: memory is freed until the last thread ends
  return instance;
}

void free_pinned(void* memory) {
  if (memory == nullptr || is_in_bad_fork()) return;
  try {
    pool().free(memory);
  } catch (const std::exception& error) {  // the block is lost, which is safe
    log_failure(TB_E_INTERNAL, "free pinned memory", error.what());
  }
}

struct PinnedAllocator final : at::HostAllocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* memory = bytes == 0 ? nullptr : pool().allocate(bytes);
    return {memory, memory, &free_pinned, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }
  bool record_event(void* memory, void*, c10::Stream stream) override {
    return pool().record(memory, stream);
  }
  void empty_cache() override { pool().empty_cache(); }
  at::HostStats get_stats() override { return pool().stats(); }
  void reset_accumulated_stats() override {
    pool().reset(&c10::CachingAllocator::Stat::reset_accumulated);
  }
  void reset_peak_stats() override { pool().reset(&c10::CachingAllocator::Stat::reset_peak); }
};

PinnedAllocator& allocator() {
  static auto& instance = *new PinnedAllocator;
  return instance;
}

REGISTER_HOST_ALLOCATOR(kOcl, &allocator())

}  // namespace

c10::Allocator* pinned_allocator() { return &allocator(); }

bool is_pinned_memory_in_flight(const void* memory, const c10::Stream& stream) {
  return pool().has_user(memory, stream);
}

void empty_host_cache() { pool().empty_cache(); }

bool is_pinned(const void* memory) {
  const tb_api* table = api_or_null();
  int32_t pinned = 0;
  if (memory == nullptr || table == nullptr || device_count() == 0) return false;
  return table->memory->is_host(memory, &pinned, nullptr) == TB_OK && pinned != 0;
}

}  // namespace torch_ocl
