// The engine of device memory that NCCL is, on memory that CUDA sees.
#pragma once

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "engine.h"
#include "torch_ocl/export.h"

namespace torch_ocl::distributed {

// The version of libnccl.so.2, which is loaded from `path` where it is not loaded already.
TORCH_OCL_API int nccl_version(const std::string& path);

// `store` is the group's own. Communicators are made when they are first needed, for the device
// whose memory is first given.
TORCH_OCL_API std::shared_ptr<DeviceEngine> make_nccl_engine(c10::intrusive_ptr<c10d::Store> store,
                                                             const std::string& path, int rank,
                                                             int size);

}  // namespace torch_ocl::distributed
