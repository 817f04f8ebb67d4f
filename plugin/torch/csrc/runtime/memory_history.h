// Records allocations and frees, for the snapshots of torch.ocl.memory.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <atomic>

#include "tensor_backend/plugin.h"

namespace torch_ocl {

inline std::atomic<bool> remembering{false};
inline bool remembers() { return remembering.load(std::memory_order_relaxed); }

// To be called if remembers(), before the address can be allocated again. Never throw.
void remember_allocation(int device, tb_address address, uint64_t bytes, int64_t stream) noexcept;
void remember_free(tb_address address) noexcept;

void bind_memory_history(pybind11::module_& module);

}  // namespace torch_ocl
