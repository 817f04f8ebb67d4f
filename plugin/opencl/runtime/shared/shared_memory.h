// Device memory that libraries beside OpenCL see, too, and other processes: what provides it for
// one device. A provider is a row in shared_memory.cpp; one for dma-buf would be another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/driver/opencl.h"

namespace ocltensor::opencl {

struct Capabilities;

// One piece of memory from both sides. OpenCL's buffer has a reference of its own to the memory,
// so that either side may be given up first.
struct SharedSegment {
  cl_mem buffer = nullptr;
  uint64_t address = 0;  // in the other library
  uint64_t bytes = 0;    // no less than were asked for
  uint64_t handle = 0;   // the provider's own
  int descriptor = -1;   // of an import, from which it is exported again
};

class SharedMemory {
 public:
  virtual ~SharedMemory() = default;

  virtual const char* library() const = 0;  // whose addresses they are: "CUDA"
  virtual int number() const = 0;           // the device's number in that library
  // New memory. Throws Error, TB_E_OUT_OF_MEMORY where the device has no more.
  virtual SharedSegment create(uint64_t bytes) = 0;
  // The memory of a descriptor that the caller keeps, as export_descriptor() made it in any
  // process.
  virtual SharedSegment import(int descriptor, uint64_t bytes) = 0;
  // The whole allocation around an address of the other library that is not of ours; `offset` is
  // the address's. TB_E_INVALID where the memory was not made to be exported.
  virtual SharedSegment import_address(uint64_t address, uint64_t& offset) = 0;
  virtual int export_descriptor(const SharedSegment& segment) = 0;  // the caller closes it
  // Gives up the other library's side; the buffer is released by whoever has it.
  virtual void release(const SharedSegment& segment) noexcept = 0;
  // Waits for all that the other library does on the device.
  virtual void synchronize() = 0;
  // Lets another device of the same library read the segment. False where it cannot.
  virtual bool admit(const SharedSegment& segment, SharedMemory& reader) = 0;
  // Returns when it is done. After synchronize() and a wait for OpenCL's own work; the source may
  // be a segment of another device that admits this one.
  virtual void copy(uint64_t target, uint64_t source, uint64_t bytes) = 0;
};

// Null, and why, where the device has none or OCLTENSOR_SHARED_MEMORY says so. Makes a small
// segment, and gives it back, before it answers: drivers may refuse.
std::unique_ptr<SharedMemory> make_shared_memory(const Capabilities& caps, cl_device_id device,
                                                 cl_context context, std::string& refusal);

}  // namespace ocltensor::opencl
