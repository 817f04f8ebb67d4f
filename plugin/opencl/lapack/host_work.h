// Work of the host between a stream's commands: scratch memory of the device that the host sees,
// and loops over matrices in threads.
#pragma once

#include <functional>

#include "call/op_call.h"
#include "library.h"

namespace ocltensor::opencl::lapack {

// Scratch memory while the host has it: waits until the stream's commands have finished, and those
// that follow wait until it is given back.
class Mapped {
 public:
  Mapped(const OpCall& call, const Scratch& scratch);
  Mapped(const Mapped&) = delete;
  ~Mapped();
  // Throws what ended the host's part, if anything did.
  void give_back();
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  Stream& stream_;
  Place place_;
  void* memory_;
};

// Calls body(i) for each of `count` matrices: in threads, one of which is the caller's, if there
// are enough matrices to keep the device's processors busy, else one after the other, with what
// threads the library's routines start. `operations`: about how many a matrix costs.
void for_matrices(const OpCall& call, const Library& library, int64_t count, double operations,
                  const std::function<void(int64_t)>& body);

}  // namespace ocltensor::opencl::lapack
