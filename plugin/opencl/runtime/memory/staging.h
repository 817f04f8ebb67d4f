// Staging memory of one stream: page-locked chunks for copies from and to ordinary host memory, so
// that small uploads need not wait and large ones reach the bus's speed.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/driver/clhpp.h"

namespace ocltensor::opencl {

class Device;

// Not thread-safe: used under its stream's lock.
class Staging {
 public:
  static constexpr uint64_t kChunkBytes = uint64_t{4} << 20;
  static constexpr size_t kMaxChunks = 4;
  static constexpr uint64_t kSmall = uint64_t{256} << 10;  // uploads up to this size do not wait

  explicit Staging(Device& device) : device_(device) {}
  ~Staging();

  // Part of a chunk, `bytes` <= kChunkBytes; null if the chunk has no room left: call next_chunk().
  void* take(uint64_t bytes);
  // To be called when all copies of the chunk are on `queue`. Waits only if all chunks are still in
  // use by earlier copies, or by commands between them and their mark(). Returns CL_SUCCESS, or the
  // error of `call`: then the full chunk stays current.
  cl_int next_chunk(cl_command_queue queue, const char*& call);
  // Records that all copies of the chunk so far are on `queue`, and no later command.
  cl_int mark(cl_command_queue queue, const char*& call);
  // To be called when no copy is pending, on any queue.
  void finished();

 private:
  struct Chunk {
    cl::Buffer buffer;  // null: ordinary memory (unified-memory devices)
    unsigned char* memory = nullptr;
    uint64_t taken = 0;
    cl::Event left;  // reached when its copies have run; null: not marked, or they have run
  };

  void add_chunk();

  Device& device_;
  std::vector<Chunk> chunks_;
  size_t current_ = 0;
};

// Page-locked memory from the driver, mapped until it is freed or the process ends.
void* allocate_pinned(Device& device, uint64_t bytes, cl::Buffer& buffer);
void free_pinned(Device& device, void* memory, cl::Buffer& buffer);

}  // namespace ocltensor::opencl
