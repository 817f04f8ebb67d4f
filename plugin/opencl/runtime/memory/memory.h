// Device memory: the pool over OpenCL buffers, and the translation of device addresses to buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/driver/capabilities.h"
#include "runtime/driver/opencl.h"
#include "runtime/pool/address_space.h"
#include "runtime/pool/pool.h"

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

 private:
  void* create(uint64_t bytes) override;
  void destroy(void* segment) override;
  uint64_t largest_allocation() override;
  void release_leaving();

  struct Objects;
  Device& device_;
  const std::unique_ptr<Objects> objects_;
  std::mutex host_mutex_;
  std::mutex segments_mutex_;
  std::unordered_map<void*, void*> segments_;  // buffers, and where the host finds them, or null
  std::unique_ptr<runtime::Pool> pool_;
};

}  // namespace ocltensor::opencl
