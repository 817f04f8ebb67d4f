// Work of the host between a stream's commands: memory of the device that the host reads and
// writes, and loops over matrices in threads.
#pragma once

#include <functional>

#include "call/op_call.h"
#include "library.h"

namespace ocltensor::opencl::lapack {

// Waits for memory's bytes.
void read_bytes(const OpCall& call, tb_address from, void* to, uint64_t bytes);
// Writes memory in stream order; `from` may change after the call.
void write_bytes(const OpCall& call, tb_address to, const void* from, uint64_t bytes);

// Calls body(i) for each of `count` matrices: in threads, one of which is the caller's, if there
// are enough matrices to keep the device's processors busy, else one after the other, with what
// threads the library's routines start. `operations`: about how many a matrix costs.
void for_matrices(const OpCall& call, const Library& library, int64_t count, double operations,
                  const std::function<void(int64_t)>& body);

}  // namespace ocltensor::opencl::lapack
