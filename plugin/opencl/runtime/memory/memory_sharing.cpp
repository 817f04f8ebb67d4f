// What the pool's segments are for another library and for other processes, and theirs as ours.
#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/driver/clhpp.h"
#include "runtime/driver/process.h"
#include "runtime/memory/memory.h"

namespace ocltensor::opencl {

SharedMemory* Memory::find_shared_memory() {
  std::call_once(shared_once_, [this] {
    shared_ = make_shared_memory(device_.caps(), device_.id(), device_.context()(), refusal_);
  });
  return shared_.get();
}

SharedMemory& Memory::shared_memory() {
  check_process();
  SharedMemory* const found = find_shared_memory();
  if (found == nullptr)
    unsupported(TB_REASON_DEVICE_FEATURE, "{} shares no memory with other libraries: {}",
                device_.caps().name, refusal_);
  return *found;
}

Memory::SharedPlace Memory::shared_place(tb_address address) {
  (void)shared_memory();  // or the reason why there is none
  const std::optional<SharedPlace> found = find_shared(resolve(address, 0, 0));
  check(found.has_value(), "{:#x} is not an address of this device's memory", address);
  return *found;
}

std::optional<Memory::SharedPlace> Memory::find_shared(Place place) {
  SharedMemory* const memory = find_shared_memory();
  if (memory == nullptr) return std::nullopt;
  const std::lock_guard lock(segments_mutex_);
  const auto found = segments_.find(place.buffer);
  if (found == segments_.end() || found->second.shared.buffer == nullptr) return std::nullopt;
  return SharedPlace{*memory, found->second.shared, place.offset};
}

tb_address Memory::adopt(const SharedSegment& made, uint64_t stream) {
  {
    const std::lock_guard lock(segments_mutex_);
    segments_.emplace(made.buffer, Segment{nullptr, made});
  }
  try {
    return pool_->adopt(made.buffer, made.bytes, stream);
  } catch (...) {
    {
      const std::lock_guard lock(segments_mutex_);
      segments_.erase(made.buffer);
    }
    const cl::Buffer released(made.buffer);
    shared_->release(made);
    throw;
  }
}

tb_address Memory::import(int descriptor, uint64_t bytes, uint64_t stream) {
  return adopt(shared_memory().import(descriptor, bytes), stream);
}

tb_address Memory::import_address(uint64_t address, uint64_t bytes, uint64_t stream, bool& is_own) {
  SharedMemory& memory = shared_memory();
  SharedSegment own;
  {
    const std::lock_guard lock(segments_mutex_);
    for (const auto& [buffer, segment] : segments_) {
      const SharedSegment& shared = segment.shared;
      if (address >= shared.address && address - shared.address < shared.bytes) own = shared;
    }
  }
  is_own = own.buffer != nullptr;
  if (is_own) return pool_->address_of(own.buffer) + (address - own.address);
  uint64_t offset = 0;
  const SharedSegment made = memory.import_address(address, offset);
  const tb_address base = adopt(made, stream);
  if (bytes <= made.bytes - offset) return base + offset;
  release_import(base);
  fail(TB_E_INVALID, "{} bytes at {:#x} lie in several allocations of {}: they can be copied only",
       bytes, address, memory.library());
}

void Memory::release_import(tb_address address) { pool_->abandon(pool_->info(address).base); }

}  // namespace ocltensor::opencl
