// OpenCL buffers as the pool's segments; page-locked host memory.
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <utility>

#include "base/config.h"
#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/driver/clhpp.h"
#include "runtime/driver/process.h"
#include "runtime/memory/staging.h"
#include "runtime/observe/recorder.h"
#include "runtime/observe/verbose.h"

namespace ocltensor::opencl {
namespace {

// The devices of pools: each call that frees memory asks, so that there is no lock for readers.
class Owners {
 public:
  void add(const runtime::Pool& pool, Device& device) {
    const std::lock_guard lock(mutex_);
    size_t at = 0;
    while (at < count_ && entries_[at].pool != &pool) ++at;  // of memory that could not be opened
    ocltensor::check(at < entries_.size(), "there are more than {} devices", entries_.size());
    entries_[at].device.store(&device, std::memory_order_relaxed);
    if (at < count_) return;
    entries_[at].pool = &pool;
    count_.store(at + 1, std::memory_order_release);
  }
  Device& of(const runtime::Pool* pool) const {
    const size_t count = count_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i)
      if (entries_[i].pool == pool) return *entries_[i].device.load(std::memory_order_relaxed);
    fail(TB_E_INTERNAL, "a pool has no device");
  }

 private:
  struct Entry {
    const runtime::Pool* pool = nullptr;  // stays once it is counted
    std::atomic<Device*> device{nullptr};
  };
  std::mutex mutex_;  // of those who add
  std::array<Entry, 256> entries_;
  std::atomic<size_t> count_{0};
};
Owners& owners() {
  static Owners& table = *new Owners;  // leaked: memory may be freed until the last thread ends
  return table;
}

runtime::PoolOptions options_for(Device& device, uint64_t recommended) {
  runtime::PoolOptions options;
  options.recommended_bytes = recommended;
  options.physical_bytes = device.caps().global_memory;
  options.high_ratio = config::get_double(config::Knob::HighWatermarkRatio);
  options.low_ratio = config::low_watermark_ratio(device.caps().unified_memory);
  // The memory of a training step grows and shrinks, and nothing else uses a discrete GPU's memory.
  if (!device.caps().unified_memory) options.keep_free = 1;
  options.debug = static_cast<uint32_t>(config::get_int(config::Knob::DebugAllocator));
  options.log = [](const std::string& line) { print_verbose("allocator", line); };
  return options;
}

}  // namespace

Place resolve(tb_address address, int64_t low, int64_t high) {
  const runtime::Location place = runtime::address_space().resolve(address);
  check(static_cast<bool>(place), "{:#x} is not an address of device memory", address);
  check(static_cast<int64_t>(place.offset) + low >= 0 &&
            place.offset + static_cast<uint64_t>(high) <= place.bytes,
        "bytes {} to {} around address {:#x} are not all inside its allocation", low, high,
        address);
  return {static_cast<cl_mem>(place.segment), place.offset};
}

Device& device_of(tb_address address) {
  const runtime::Location place = runtime::address_space().resolve(address);
  check(static_cast<bool>(place), "{:#x} is not an address of device memory", address);
  return owners().of(place.pool);
}

struct Memory::Objects {
  struct Pinned {
    uint64_t bytes;
    cl::Buffer buffer;
  };
  std::map<uintptr_t, Pinned> host;  // by address; guarded by host_mutex_
  std::vector<cl::Buffer> leaving;   // segments to release; guarded by the pool's lock
};

Memory::Memory(Device& device, runtime::StreamClock& clock)
    : device_(device), objects_(std::make_unique<Objects>()) {
  pool_.reset(new runtime::Pool(runtime::address_space(), *this, clock,
                                options_for(device, recommended_memory(device.caps()))));
  owners().add(*pool_, device_);
}
Memory::~Memory() = default;

uint64_t recommended_memory(const Capabilities& caps) {
  return caps.unified_memory ? caps.global_memory / 4 * 3 : caps.global_memory / 20 * 19;
}

tb_address Memory::allocate(uint64_t bytes, uint64_t stream) {
  check_process();
  const tb_address address = pool_->allocate(bytes, stream);
  if (recorder::recording()) [[unlikely]]
    recorder::allocated(address, bytes);
  return address;
}

void Memory::free(tb_address address, uint64_t stream) {
  check_process();
  pool_->free(address, stream);
}

// Asks for huge pages for a CPU driver's buffer before it is first written: sweeps over large
// tensors then cause a 512th of the TLB misses. This is only a hint, so failures are ignored.
void advise_huge_pages(void* memory, uint64_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(memory) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes) / page * page;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

// The same for a buffer whose address only a command tells.
void advise_huge_pages(Device& device, cl_mem buffer, uint64_t bytes) {
  const cl_command_queue queue = device.service_queue();
  cl_int code = CL_SUCCESS;
  void* memory = cl().clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                         bytes, 0, nullptr, nullptr, &code);
  if (code != CL_SUCCESS) return;
  advise_huge_pages(memory, bytes);
  cl().clEnqueueUnmapMemObject(queue, buffer, memory, 0, nullptr, nullptr);
  cl().clFinish(queue);
}

// A huge page is made at its first touch in a fraction of the time that its small ones take.
void prefer_huge_pages(void* memory, uint64_t bytes) {
  constexpr uintptr_t kPage = 4096;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (begin + kPage - 1) / kPage * kPage,
                  end = (begin + bytes) / kPage * kPage;
  if (end > first) (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

// A buffer over fine-grained shared memory, of which the OpenCL specification (2.0, 3.3.3 and
// 5.6.1) lets the host use what no command uses. The memory lives as long as the buffer, which
// commands may keep. Empty: the driver has no such memory.
struct Shared {
  cl::Buffer buffer;
  void* memory = nullptr;
};
Shared create_shared(const cl::Context& context, uint64_t bytes) {
  struct Owned {
    cl_context context;
    void* memory;
  };
  void* memory = cl().clSVMAlloc(context(), CL_MEM_READ_WRITE | kMemSvmFineGrain, bytes, 0);
  if (memory == nullptr) return {};
  prefer_huge_pages(memory, bytes);
  cl_int code = CL_SUCCESS;
  cl::Buffer buffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, memory, &code);
  auto owned = std::make_unique<Owned>(Owned{context(), memory});
  const auto release = [](cl_mem, void* data) {
    const std::unique_ptr<Owned> ended(static_cast<Owned*>(data));
    cl().clSVMFree(ended->context, ended->memory);
  };
  if (code == CL_SUCCESS) code = buffer.setDestructorCallback(release, owned.get());
  if (code != CL_SUCCESS) {
    buffer = nullptr;
    cl().clSVMFree(context(), memory);
    return {};
  }
  (void)owned.release();
  return {std::move(buffer), memory};
}

void* Memory::create(uint64_t bytes) {
  release_leaving();
  const Capabilities& caps = device_.caps();
  if (SharedMemory* const provider = find_shared_memory()) {
    const SharedSegment segment = provider->create(bytes);
    const std::lock_guard lock(segments_mutex_);
    segments_.emplace(segment.buffer, Segment{nullptr, segment});
    return segment.buffer;
  }
  Shared made;
  if (caps.host_addresses) made = create_shared(device_.context(), bytes);
  cl_int code = CL_SUCCESS;
  if (made.buffer() == nullptr) {
    const cl_mem_flags flags =
        CL_MEM_READ_WRITE | (caps.unified_memory ? CL_MEM_ALLOC_HOST_PTR : 0);
    made.buffer = cl::Buffer(device_.context(), flags, bytes, nullptr, &code);
  }
  if (code == CL_SUCCESS && !caps.unified_memory) {
    // Drivers of discrete devices allocate at the first use. A small write makes them do it now, so
    // that this call fails, and not a later one.
    const cl_uint zero = 0;
    const cl_command_queue queue = device_.service_queue();
    code = cl().clEnqueueFillBuffer(queue, made.buffer(), &zero, sizeof zero, 0, sizeof zero, 0,
                                    nullptr, nullptr);
    if (code == CL_SUCCESS) code = cl().clFinish(queue);
  }
  if (code != CL_SUCCESS)
    throw Error(TB_E_OUT_OF_MEMORY, 0,
                fmt::format("the driver has no buffer of {} bytes: {}", bytes, error_name(code)),
                code);
  constexpr uint64_t kWorthHugePages = 4 << 20;
  if (made.memory != nullptr && bytes >= kWorthHugePages)
    advise_huge_pages(made.memory, bytes);
  else if ((caps.type & CL_DEVICE_TYPE_CPU) != 0 && bytes >= kWorthHugePages)
    advise_huge_pages(device_, made.buffer(), bytes);
  const std::lock_guard lock(segments_mutex_);
  segments_.emplace(made.buffer(), Segment{made.memory});
  return std::exchange(made.buffer(), nullptr);
}

std::byte* Memory::host_address(cl_mem buffer) {
  if (!device_.caps().host_addresses) return nullptr;
  const std::lock_guard lock(segments_mutex_);
  const auto found = segments_.find(buffer);
  return found == segments_.end() ? nullptr : static_cast<std::byte*>(found->second.host);
}

bool Memory::is_segment(cl_mem buffer) {
  const std::lock_guard lock(segments_mutex_);
  return segments_.contains(buffer);
}

void Memory::destroy(void* segment) {
  Segment ended;
  {
    const std::lock_guard lock(segments_mutex_);
    const auto found = segments_.find(segment);
    if (found != segments_.end()) ended = found->second, segments_.erase(found);
  }
  if (ended.shared.buffer != nullptr) shared_->release(ended.shared);
  objects_->leaving.emplace_back(static_cast<cl_mem>(segment));
  release_leaving();
}
// The driver keeps a buffer alive for commands that it knows of, so commands that wait are
// submitted first; but for those that wait for a proof, which may need the pool's lock that is held
// here.
void Memory::release_leaving() {
  if (!objects_->leaving.empty() && device_.try_submit_launches()) objects_->leaving.clear();
}
uint64_t Memory::largest_allocation() { return device_.caps().largest_allocation; }

void* Memory::allocate_host(uint64_t bytes) {
  Objects::Pinned pinned{std::max<uint64_t>(bytes, 1), {}};
  void* memory = allocate_pinned(device_, pinned.bytes, pinned.buffer);
  pool_->count_pinned(static_cast<int64_t>(pinned.bytes));
  std::lock_guard lock(host_mutex_);
  objects_->host.emplace(reinterpret_cast<uintptr_t>(memory), std::move(pinned));
  return memory;
}

bool Memory::free_host(void* memory) {
  if (!is_host(memory)) return false;
  std::exception_ptr failure;
  // Copies, also those of other devices, may still use the memory. Refused commands are raised by
  // the stream's next call, because this one may come from a destructor.
  for (const auto& device : device_list().devices) {
    if (!device->is_open()) continue;
    try {
      device->synchronize(false);
    } catch (const Error&) {  // a failure of earlier work; all of it has ended
      failure = std::current_exception();
    }
  }
  Objects::Pinned pinned;
  {
    std::lock_guard lock(host_mutex_);
    const auto it = objects_->host.find(reinterpret_cast<uintptr_t>(memory));
    if (it == objects_->host.end()) return false;
    pinned = std::move(it->second);
    objects_->host.erase(it);
  }
  pool_->count_pinned(-static_cast<int64_t>(pinned.bytes));
  free_pinned(device_, memory, pinned.buffer);
  if (failure) std::rethrow_exception(failure);
  return true;
}

bool Memory::is_host(const void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  std::lock_guard lock(host_mutex_);
  auto it = objects_->host.upper_bound(address);
  if (it == objects_->host.begin()) return false;
  --it;
  return address < it->first + it->second.bytes;
}

}  // namespace ocltensor::opencl
