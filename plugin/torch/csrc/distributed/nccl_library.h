// Functions of NCCL, and what they need of CUDA's driver: loaded at run time, from PyTorch's CUDA
// build or the wheels nvidia-nccl-*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace torch_ocl::distributed::nccl {

using Result = int;     // ncclResult_t, CUresult
using Comm = void*;     // ncclComm_t
using Stream = void*;   // cudaStream_t, CUstream
using Context = void*;  // CUcontext
using Op = int;         // ncclRedOp_t
using Type = int;       // ncclDataType_t

struct Id {  // ncclUniqueId
  char bytes[128];
};

constexpr Op kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAverage = 4;
constexpr int kHostScalar = 1;     // ncclScalarHostImmediate
constexpr Result kNotReady = 600;  // CUDA_ERROR_NOT_READY

// clang-format off
#define OCLTENSOR_NCCL_FUNCTIONS(X)                                                            \
  X(version, "ncclGetVersion", (int*))                                                         \
  X(unique_id, "ncclGetUniqueId", (Id*))                                                       \
  X(init_rank, "ncclCommInitRank", (Comm*, int, Id, int))                                      \
  X(abort, "ncclCommAbort", (Comm))                                                            \
  X(async_error, "ncclCommGetAsyncError", (Comm, Result*))                                     \
  X(group_start, "ncclGroupStart", ())                                                         \
  X(group_end, "ncclGroupEnd", ())                                                             \
  X(broadcast, "ncclBroadcast", (const void*, void*, size_t, Type, int, Comm, Stream))         \
  X(all_reduce, "ncclAllReduce", (const void*, void*, size_t, Type, Op, Comm, Stream))         \
  X(reduce, "ncclReduce", (const void*, void*, size_t, Type, Op, int, Comm, Stream))           \
  X(all_gather, "ncclAllGather", (const void*, void*, size_t, Type, Comm, Stream))             \
  X(reduce_scatter, "ncclReduceScatter", (const void*, void*, size_t, Type, Op, Comm, Stream)) \
  X(send, "ncclSend", (const void*, size_t, Type, int, Comm, Stream))                          \
  X(receive, "ncclRecv", (void*, size_t, Type, int, Comm, Stream))                             \
  X(scaled_sum, "ncclRedOpCreatePreMulSum", (Op*, void*, Type, int, Comm))                     \
  X(destroy_op, "ncclRedOpDestroy", (Op, Comm))

#define OCLTENSOR_NCCL_DRIVER_FUNCTIONS(X)                                                     \
  X(init, "cuInit", (unsigned))                                                                \
  X(device, "cuDeviceGet", (int*, int))                                                        \
  X(retain_primary, "cuDevicePrimaryCtxRetain", (Context*, int))                               \
  X(push, "cuCtxPushCurrent_v2", (Context))                                                    \
  X(pop, "cuCtxPopCurrent_v2", (Context*))                                                     \
  X(create_stream, "cuStreamCreate", (Stream*, unsigned))                                      \
  X(query_stream, "cuStreamQuery", (Stream))                                                   \
  X(destroy_stream, "cuStreamDestroy_v2", (Stream))
// clang-format on

struct Functions {
#define X(field, name, parameters) Result(*field) parameters;
  OCLTENSOR_NCCL_FUNCTIONS(X)
#undef X
  const char* (*error_text)(Result);
  struct Driver {
#define X(field, name, parameters) Result(*field) parameters;
    OCLTENSOR_NCCL_DRIVER_FUNCTIONS(X)
#undef X
  } driver;
};

// Loads libnccl.so.2, the one that is loaded already or else that of `path`, at the first call.
// Throws, with the reason, if it cannot be used.
const Functions& functions(const std::string& path);

// Throws with the call's name and the library's text.
void check(const Functions& library, Result result, const char* call);
void check_driver(Result result, const char* call);

}  // namespace torch_ocl::distributed::nccl
