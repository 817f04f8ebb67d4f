// Device memory: the pool over OpenCL buffers, and the translation of device addresses to buffers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/driver/capabilities.h"
#include "runtime/driver/opencl.h"
#include "runtime/pool/address_space.h"
#include "runtime/pool/pool.h"

namespace ocltensor::opencl {

class Device;

// What a kernel argument is made of.
struct Place {
  cl_mem buffer;
  uint64_t offset;  // bytes
};

// Translates an address of which bytes [low, high) around it are used. TB_E_INVALID for an address
// that no live segment owns, or a range that leaves its segment.
Place resolve(tb_address address, int64_t low, int64_t high);
Device& device_of(tb_address address);

// Three quarters of memory shared with the host, as MPS has it; nearly all of a discrete device's.
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

  // Pinned host memory; tracked so that any pointer into it is recognised.
  void* allocate_host(uint64_t bytes);
  bool free_host(void* memory);  // false: not ours
  bool is_host(const void* memory);

 private:
  void* create(uint64_t bytes) override;
  void destroy(void* segment) override;
  uint64_t largest_allocation() override;

  struct Pinned {
    uint64_t bytes;
    Handle<cl_mem> buffer;
  };
  Device& device_;
  std::mutex host_mutex_;
  std::map<uintptr_t, Pinned> host_;
  std::unique_ptr<runtime::Pool> pool_;
};

}  // namespace ocltensor::opencl
