// The entry points of CUDA's driver, libcuda.so.1, which comes with NVIDIA's OpenCL: loaded at run
// time, declared here, so that neither toolkit nor headers of CUDA are needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ocltensor::opencl::cuda {

using Result = int;        // CUresult
using DeviceNumber = int;  // CUdevice
using Address = uint64_t;  // CUdeviceptr
using Handle = uint64_t;   // CUmemGenericAllocationHandle
using Context = void*;     // CUcontext
using Stream = void*;      // CUstream

constexpr Result kSuccess = 0, kOutOfMemory = 2, kInvalidContext = 201;
constexpr int kTypeDescriptor = 1;    // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
constexpr int kOnDevice = 1;          // CU_MEM_LOCATION_TYPE_DEVICE
constexpr int kPinned = 1;            // CU_MEM_ALLOCATION_TYPE_PINNED
constexpr int kReadAndWrite = 3;      // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
constexpr unsigned kNotBlocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr int kHasMemoryManagement =
    102;                              // CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
constexpr int kHasDescriptors = 103;  // CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_...

struct Location {  // CUmemLocation
  int type, id;
};
struct Properties {  // CUmemAllocationProp
  int type, handle_types;
  Location location;
  void* windows;
  uint64_t flags;
};
struct Access {  // CUmemAccessDesc
  Location location;
  int flags;
};

// clang-format off
//   X(field, name in the library, parameters)
#define OCLTENSOR_CUDA_FUNCTIONS(X)                                                              \
  X(init, "cuInit", (unsigned))                                                                  \
  X(error_name, "cuGetErrorName", (Result, const char**))                                        \
  X(device_count, "cuDeviceGetCount", (int*))                                                    \
  X(device, "cuDeviceGet", (DeviceNumber*, int))                                                 \
  X(uuid, "cuDeviceGetUuid_v2", (void*, DeviceNumber))                                           \
  X(can_access, "cuDeviceCanAccessPeer", (int*, DeviceNumber, DeviceNumber))                     \
  X(attribute, "cuDeviceGetAttribute", (int*, int, DeviceNumber))                                \
  X(primary_state, "cuDevicePrimaryCtxGetState", (DeviceNumber, unsigned*, int*))                \
  X(retain_primary, "cuDevicePrimaryCtxRetain", (Context*, DeviceNumber))                        \
  X(push, "cuCtxPushCurrent_v2", (Context))                                                      \
  X(pop, "cuCtxPopCurrent_v2", (Context*))                                                       \
  X(synchronize, "cuCtxSynchronize", ())                                                         \
  X(granularity, "cuMemGetAllocationGranularity", (size_t*, const Properties*, int))             \
  X(create, "cuMemCreate", (Handle*, size_t, const Properties*, uint64_t))                       \
  X(release, "cuMemRelease", (Handle))                                                           \
  X(reserve, "cuMemAddressReserve", (Address*, size_t, size_t, Address, uint64_t))               \
  X(unreserve, "cuMemAddressFree", (Address, size_t))                                            \
  X(map, "cuMemMap", (Address, size_t, size_t, Handle, uint64_t))                                \
  X(unmap, "cuMemUnmap", (Address, size_t))                                                      \
  X(set_access, "cuMemSetAccess", (Address, size_t, const Access*, size_t))                      \
  X(export_handle, "cuMemExportToShareableHandle", (void*, Handle, int, uint64_t))               \
  X(import_handle, "cuMemImportFromShareableHandle", (Handle*, void*, int))                      \
  X(handle_of, "cuMemRetainAllocationHandle", (Handle*, void*))                                  \
  X(range_of, "cuMemGetAddressRange_v2", (Address*, size_t*, Address))                           \
  X(make_stream, "cuStreamCreate", (Stream*, unsigned))                                          \
  X(synchronize_stream, "cuStreamSynchronize", (Stream))                                         \
  X(copy, "cuMemcpyDtoDAsync_v2", (Address, Address, size_t, Stream))
// clang-format on

struct Functions {
#define X(field, name, parameters) Result(*field) parameters;
  OCLTENSOR_CUDA_FUNCTIONS(X)
#undef X
};

// Loads the library and initialises CUDA at the first call. Throws Error(TB_E_UNAVAILABLE), on
// each call, with the reason if that fails.
const Functions& functions();

// Throws an Error that names the call and the result: TB_E_OUT_OF_MEMORY for want of memory, else
// TB_E_INTERNAL.
void check(Result result, const char* call);

}  // namespace ocltensor::opencl::cuda
