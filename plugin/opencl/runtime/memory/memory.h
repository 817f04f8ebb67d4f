// Device memory: the pool over OpenCL buffers, and the translation of device addresses to buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/driver/capabilities.h"
#include "runtime/driver/opencl.h"
#include "runtime/pool/address_space.h"
#include "runtime/pool/pool.h"
#include "runtime/shared/shared_memory.h"

namespace ocltensor::opencl {

class Device;

// The buffer and offset from which a kernel argument is made.
struct Place {
  cl_mem buffer;
  uint64_t offset;  // bytes
};

// Translates an address around which bytes [low, high) are used. TB_E_INVALID for an address
// outside of live segments, or a range that leaves its segment.
Place resolve(tb_address address, int64_t low, int64_t high);
Device& device_of(tb_address address);

// Three quarters of memory that is shared with the host, as MPS does; nearly all of a discrete
// device's memory.
uint64_t recommended_memory(const Capabilities& caps);

class Memory : private runtime::SegmentSource {
 public:
  // `clock`: the progress of the device's streams; it outlives this.
  Memory(Device& device, runtime::StreamClock& clock);
  ~Memory() override;

  // For the work of a stream, by its number. TB_E_OUT_OF_MEMORY where the device has no more.
  tb_address allocate(uint64_t bytes, uint64_t stream);
  void free(tb_address address, uint64_t stream);
  void forget_stream(uint64_t id) { pool_->forget_stream(id); }
  runtime::Pool& pool() { return *pool_; }

  // Pinned host memory, registered so that any pointer into it is recognised.
  void* allocate_host(uint64_t bytes);
  bool free_host(void* memory);  // false: not allocated here
  bool is_host(const void* memory);
  // Whether it is a buffer of the pool that exists now.
  bool is_segment(cl_mem buffer);
  // Where the host may use a buffer of the pool itself, while no command does: its first byte. Null
  // for devices without host addresses, and other buffers.
  std::byte* host_address(cl_mem buffer);

  // ---- Memory that another library and other processes see (memory_sharing.cpp)
  struct SharedPlace {
    SharedMemory& memory;
    SharedSegment segment;
    uint64_t offset;  // of the address in it
  };
  // Where the address is for the other library. TB_UNSUPPORTED, with the reason, where the device
  // shares no memory, or the segment was made before it did.
  SharedPlace shared_place(tb_address address);
  std::optional<SharedPlace> find_shared(Place place);  // none: no library sees it
  // The device's own provider; TB_UNSUPPORTED as above.
  SharedMemory& shared_memory();
  // The segment behind a descriptor, or around an address of the other library, as one allocation
  // of this device that is used on the stream. What is in this pool already is not imported again:
  // `is_own`, and nothing is to be released.
  tb_address import(int descriptor, uint64_t bytes, uint64_t stream);
  tb_address import_address(uint64_t address, uint64_t bytes, uint64_t stream, bool& is_own);
  // Of any address in it; waits for the streams that use it.
  void release_import(tb_address address);

 private:
  struct Segment {
    void* host = nullptr;    // where the host finds it
    SharedSegment shared{};  // where another library does; its buffer is null if none does
  };
  SharedMemory* find_shared_memory();
  tb_address adopt(const SharedSegment& made, uint64_t stream);
  void* create(uint64_t bytes) override;
  void destroy(void* segment) override;
  uint64_t largest_allocation() override;
  void release_leaving();

  struct Objects;
  Device& device_;
  const std::unique_ptr<Objects> objects_;
  std::mutex host_mutex_;
  std::mutex segments_mutex_;
  std::unordered_map<void*, Segment> segments_;  // by buffer
  std::once_flag shared_once_;
  std::unique_ptr<SharedMemory> shared_;
  std::string refusal_;  // why there is none
  std::unique_ptr<runtime::Pool> pool_;
};

}  // namespace ocltensor::opencl
