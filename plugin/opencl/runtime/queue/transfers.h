// Copies between the host's memory and a stream's device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/queue/driver_queue.h"

namespace ocltensor::opencl {

// Made by who holds the queue, for one copy: directly where the host may use the buffer's memory,
// by one command, or in pieces of staging memory.
class Transfers {
 public:
  explicit Transfers(DriverQueue& queue) : queue_(queue) {}

  // Blocks, unless it is asynchronous: then the target must remain until the copy has run.
  void read(void* target, cl_mem source, uint64_t offset, uint64_t bytes, bool asynchronous);
  // The caller may reuse its memory when this returns.
  void write(cl_mem target, uint64_t offset, const void* source, uint64_t bytes);
  // The same, without any command: false if there has to be one.
  bool write_at_once(cl_mem target, uint64_t offset, const void* source, uint64_t bytes);

  void* map(cl_mem buffer, uint64_t offset, uint64_t bytes, cl_map_flags flags);
  void unmap(cl_mem buffer, void* memory);

 private:
  // A buffer's memory that the host may use itself when the queue is settled; null: by commands
  // alone, as also while they are traced.
  std::byte* host_address(cl_mem buffer, uint64_t offset);
  void read_in_pieces(std::byte* target, cl_mem source, uint64_t offset, uint64_t bytes);
  void write_in_pieces(cl_mem target, uint64_t offset, const std::byte* source, uint64_t bytes);
  void enqueue_read(void* target, cl_mem source, uint64_t offset, uint64_t bytes, bool blocking,
                    cl_event* event);
  void enqueue_write(cl_mem target, uint64_t offset, const void* source, uint64_t bytes,
                     bool blocking);

  DriverQueue& queue_;
};

}  // namespace ocltensor::opencl
