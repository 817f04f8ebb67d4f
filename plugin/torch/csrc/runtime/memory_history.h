// Records allocations and frees, for the snapshots of torch.ocl.memory.
#pragma once

#include <torch/csrc/profiler/combined_traceback.h>

#include <atomic>
#include <memory>
#include <vector>

#include "tensor_backend/plugin.h"
#include "torch_ocl/export.h"

namespace torch_ocl {

struct MemoryEvent {
  bool allocated;  // else freed
  int device;
  tb_address address;
  uint64_t bytes;
  int64_t stream;
  int64_t time_us;                                  // since 1970
  std::shared_ptr<torch::CapturedTraceback> stack;  // of the allocation; may be null
};

struct MemoryHistory {
  std::vector<MemoryEvent> events;  // in their order
  std::vector<MemoryEvent> live;    // allocations that are not freed
};

inline std::atomic<bool> remembering{false};
inline bool remembers() { return remembering.load(std::memory_order_relaxed); }

// To be called if remembers(), before the address can be allocated again. Never throw.
void remember_allocation(int device, tb_address address, uint64_t bytes, int64_t stream) noexcept;
void remember_free(tb_address address) noexcept;

// Keeps at most `most` events; 0: only live allocations. Stacks of Python, if asked for, take the
// GIL when they are released: none of these may be called with it.
TORCH_OCL_API void start_memory_history(bool stacks, size_t most);
TORCH_OCL_API void stop_memory_history();
TORCH_OCL_API MemoryHistory memory_history();

}  // namespace torch_ocl
