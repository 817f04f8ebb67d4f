// Allocates chunks of page-locked memory.
#include "staging.h"

#include <cstdlib>

#include "ocltensor/error.h"
#include "runtime/device/device.h"

namespace ocltensor::opencl {

void* allocate_pinned(Device& device, uint64_t bytes, cl::Buffer& buffer) {
  if (device.caps().unified_memory) {  // ordinary memory is as good there
    void* memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (memory == nullptr)
      fail(TB_E_OUT_OF_MEMORY, "cannot allocate {} bytes of host memory", bytes);
    return memory;
  }
  cl_int code = CL_SUCCESS;
  buffer = cl::Buffer(device.context(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr,
                      &code);
  check_cl(code, "clCreateBuffer (pinned)");
  void* memory =
      cl().clEnqueueMapBuffer(device.service_queue(), buffer(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                              0, bytes, 0, nullptr, nullptr, &code);
  check_cl(code, "clEnqueueMapBuffer (pinned)");
  return memory;
}

void free_pinned(Device& device, void* memory, cl::Buffer& buffer) {
  if (buffer() != nullptr) {
    cl().clEnqueueUnmapMemObject(device.service_queue(), buffer(), memory, 0, nullptr, nullptr);
    cl().clFinish(device.service_queue());
    buffer = nullptr;
  } else {
    std::free(memory);
  }
}

Staging::~Staging() {
  for (Chunk& chunk : chunks_) free_pinned(device_, chunk.memory, chunk.buffer);
}

cl_int Staging::mark(cl_command_queue queue, const char*& call) {
  if (chunks_.empty() || chunks_[current_].left() != nullptr) return CL_SUCCESS;
  call = "clEnqueueMarkerWithWaitList";
  return cl().clEnqueueMarkerWithWaitList(queue, 0, nullptr, &chunks_[current_].left());
}

void Staging::add_chunk() {
  Chunk chunk;
  chunk.memory = static_cast<unsigned char*>(allocate_pinned(device_, kChunkBytes, chunk.buffer));
  chunks_.push_back(std::move(chunk));
  current_ = chunks_.size() - 1;
}

cl_int Staging::next_chunk(cl_command_queue queue, const char*& call) {
  if (const cl_int code = mark(queue, call); code != CL_SUCCESS) return code;
  if (chunks_.size() < kMaxChunks) {
    add_chunk();
    return CL_SUCCESS;
  }
  const size_t next = (current_ + 1) % chunks_.size();
  if (const cl_event event = chunks_[next].left()) {
    call = "clFlush";
    if (const cl_int code = cl().clFlush(queue); code != CL_SUCCESS) return code;
    call = "clWaitForEvents";
    if (const cl_int code = cl().clWaitForEvents(1, &event); code != CL_SUCCESS) return code;
    chunks_[next].left = nullptr;
  }
  chunks_[next].taken = 0;
  current_ = next;
  return CL_SUCCESS;
}

void Staging::finished() {
  for (Chunk& chunk : chunks_) chunk.left = nullptr;
}

void* Staging::take(uint64_t bytes) {
  constexpr uint64_t kAlign = 128;
  if (chunks_.empty()) add_chunk();
  const uint64_t rounded = (bytes + kAlign - 1) / kAlign * kAlign;
  if (chunks_[current_].taken + rounded > kChunkBytes) return nullptr;
  void* memory = chunks_[current_].memory + chunks_[current_].taken;
  chunks_[current_].taken += rounded;
  chunks_[current_].left = nullptr;
  return memory;
}

}  // namespace ocltensor::opencl
