// Segments by cuMemCreate, which both sides map. Nothing acquires or releases them between the two:
// NVIDIA's driver needs no more than the host's wait (bench/history.md).
#include "cuda_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ocltensor/error.h"
#include "runtime/driver/capabilities.h"
#include "runtime/driver/clhpp.h"
#include "runtime/shared/cuda_driver.h"

namespace ocltensor::opencl {
namespace {

using cuda::Address;
using cuda::Handle;

// Of cl_khr_device_uuid, cl_khr_external_memory and OpenCL 3.0, which the headers for 1.2 lack.
constexpr cl_device_info kUuid = 0x106A, kImportTypes = 0x204F;
constexpr cl_ulong kDeviceList = 0x2051, kOpaqueDescriptor = 0x2060;
using Uuid = std::array<char, 16>;
using CreateBuffer = cl_mem(CL_API_CALL*)(cl_context, const cl_ulong*, cl_mem_flags, size_t, void*,
                                          cl_int*);

void check_extensions(const cl::Device& device) {
  std::string extensions;
  check_cl(device.getInfo(CL_DEVICE_EXTENSIONS, &extensions), "clGetDeviceInfo");
  for (const char* name :
       {"cl_khr_external_memory", "cl_khr_external_memory_opaque_fd", "cl_khr_device_uuid"})
    if (extensions.find(name) == std::string::npos)
      fail(TB_E_UNAVAILABLE, "the OpenCL driver lacks {}", name);
}

// The CUDA device that is this OpenCL device.
int number_of(const cl::Device& device) {
  Uuid wanted{};
  check_cl(device.getInfo(kUuid, &wanted), "clGetDeviceInfo (UUID)");
  const cuda::Functions& driver = cuda::functions();
  int count = 0;
  cuda::check(driver.device_count(&count), "cuDeviceGetCount");
  for (int number = 0; number < count; ++number) {
    cuda::DeviceNumber found = 0;
    Uuid uuid{};
    cuda::check(driver.device(&found, number), "cuDeviceGet");
    cuda::check(driver.uuid(uuid.data(), found), "cuDeviceGetUuid");
    if (uuid == wanted) return number;
  }
  fail(TB_E_UNAVAILABLE, "none of CUDA's {} devices has this device's UUID", count);
}

// Makes the device's primary context current, the one that CUDA's libraries use, and afterwards
// what was current before.
class Current {
 public:
  explicit Current(cuda::Context context) {
    cuda::check(cuda::functions().push(context), "cuCtxPushCurrent");
  }
  ~Current() {
    cuda::Context popped = nullptr;
    (void)cuda::functions().pop(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

class CudaMemory final : public SharedMemory {
 public:
  CudaMemory(cl_device_id device, cl_context context, CreateBuffer create_buffer, int number)
      : device_(device), context_(context), create_buffer_(create_buffer), number_(number) {
    const cuda::Functions& driver = cuda::functions();
    cuda::check(driver.device(&cuda_device_, number), "cuDeviceGet");
    for (const int needed : {cuda::kHasMemoryManagement, cuda::kHasDescriptors}) {
      int has = 0;
      cuda::check(driver.attribute(&has, needed, cuda_device_), "cuDeviceGetAttribute");
      if (has == 0)
        fail(TB_E_UNAVAILABLE, "the device's memory cannot be exported by CUDA (attribute {})",
             needed);
    }
    const cuda::Properties properties = wanted();
    cuda::check(driver.granularity(&granularity_, &properties, 0), "cuMemGetAllocationGranularity");
  }

  const char* library() const override { return "CUDA"; }
  int number() const override { return number_; }

  SharedSegment create(uint64_t bytes) override {
    const cuda::Properties properties = wanted();
    const uint64_t size = rounded(bytes);
    Handle handle = 0;
    cuda::check(cuda::functions().create(&handle, size, &properties, 0), "cuMemCreate");
    return with_both_sides({nullptr, 0, size, handle});
  }

  // CUDA exports no handle that was imported, so the descriptor stays.
  SharedSegment import(int descriptor, uint64_t bytes) override {
    SharedSegment made{nullptr, 0, rounded(bytes), 0, duplicate(descriptor)};
    auto* given = reinterpret_cast<void*>(static_cast<intptr_t>(made.descriptor));  // NOLINT
    const cuda::Result result =
        cuda::functions().import_handle(&made.handle, given, cuda::kTypeDescriptor);
    if (result != cuda::kSuccess) close(made.descriptor);
    cuda::check(result, "cuMemImportFromShareableHandle");
    return with_both_sides(made);
  }

  SharedSegment import_address(uint64_t address, uint64_t& offset) override {
    const cuda::Functions& driver = cuda::functions();
    Handle handle = 0;
    if (driver.handle_of(&handle, reinterpret_cast<void*>(address)) != cuda::kSuccess)  // NOLINT
      fail(TB_E_INVALID,
           "CUDA's memory at {:#x} was not made by cuMemCreate: it can be copied only", address);
    Address base = 0;
    size_t bytes = 0;
    const cuda::Result result = driver.range_of(&base, &bytes, address);
    if (result != cuda::kSuccess) (void)driver.release(handle);
    cuda::check(result, "cuMemGetAddressRange");
    offset = address - base;
    return with_both_sides({nullptr, 0, bytes, handle});
  }

  int export_descriptor(const SharedSegment& segment) override {
    if (segment.descriptor >= 0) return duplicate(segment.descriptor);
    int made = -1;
    cuda::check(cuda::functions().export_handle(&made, segment.handle, cuda::kTypeDescriptor, 0),
                "cuMemExportToShareableHandle");
    return made;
  }

  void release(const SharedSegment& segment) noexcept override {
    const cuda::Functions& driver = cuda::functions();
    if (segment.address != 0) {
      {
        const std::lock_guard lock(mutex_);
        std::erase_if(admitted_, [&](const auto& pair) { return pair.first == segment.address; });
      }
      (void)driver.unmap(segment.address, segment.bytes);
      (void)driver.unreserve(segment.address, segment.bytes);
    }
    (void)driver.release(segment.handle);
    if (segment.descriptor >= 0) close(segment.descriptor);
  }

  void synchronize() override {
    unsigned flags = 0;
    int active = 0;
    const cuda::Functions& driver = cuda::functions();
    cuda::check(driver.primary_state(cuda_device_, &flags, &active), "cuDevicePrimaryCtxGetState");
    if (active == 0) return;  // nobody has used CUDA
    const Current current(primary());
    cuda::check(driver.synchronize(), "cuCtxSynchronize");
  }

  bool admit(const SharedSegment& segment, SharedMemory& reader) override {
    auto* const other = dynamic_cast<CudaMemory*>(&reader);
    if (other == nullptr) return false;
    try {
      (void)other->primary();
    } catch (const Error&) {
      return false;  // it takes memory
    }
    const cuda::Functions& driver = cuda::functions();
    int reaches = 0;
    if (driver.can_access(&reaches, other->cuda_device_, cuda_device_) != cuda::kSuccess ||
        reaches == 0)
      return false;
    const std::lock_guard lock(mutex_);
    const std::pair key(segment.address, other->number_);
    if (admitted_.contains(key)) return true;
    const cuda::Access access{{cuda::kOnDevice, other->cuda_device_}, cuda::kReadAndWrite};
    if (driver.set_access(segment.address, segment.bytes, &access, 1) != cuda::kSuccess)
      return false;
    admitted_.insert(key);
    return true;
  }

  void copy(uint64_t target, uint64_t source, uint64_t bytes) override {
    const Current current(primary());
    const cuda::Stream stream = copies();
    cuda::check(cuda::functions().copy(target, source, bytes, stream), "cuMemcpyDtoDAsync");
    cuda::check(cuda::functions().synchronize_stream(stream), "cuStreamSynchronize");
  }

 private:
  cuda::Properties wanted() const {
    return {cuda::kPinned, cuda::kTypeDescriptor, {cuda::kOnDevice, cuda_device_}, nullptr, 0};
  }
  uint64_t rounded(uint64_t bytes) const {
    return (std::max<uint64_t>(bytes, 1) + granularity_ - 1) / granularity_ * granularity_;
  }

  // Retained until the process ends, as CUDA's runtime does.
  cuda::Context primary() {
    const std::lock_guard lock(mutex_);
    if (primary_ == nullptr)
      cuda::check(cuda::functions().retain_primary(&primary_, cuda_device_),
                  "cuDevicePrimaryCtxRetain");
    return primary_;
  }

  // Of this class alone: a wait for it is for no library's work. The primary context is current.
  cuda::Stream copies() {
    const std::lock_guard lock(mutex_);
    if (copies_ == nullptr)
      cuda::check(cuda::functions().make_stream(&copies_, cuda::kNotBlocking), "cuStreamCreate");
    return copies_;
  }

  static int duplicate(int descriptor) {
    const int made = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (made < 0) fail(TB_E_INTERNAL, "cannot duplicate a descriptor: {}", std::strerror(errno));
    return made;
  }

  // Takes the handle and the descriptor over: they are released where this fails.
  SharedSegment with_both_sides(SharedSegment made) {
    const cuda::Functions& driver = cuda::functions();
    const uint64_t bytes = made.bytes;
    bool is_mapped = false;
    try {
      made.buffer = import_buffer(export_descriptor(made), bytes);
      cuda::check(driver.reserve(&made.address, bytes, 0, 0, 0), "cuMemAddressReserve");
      cuda::check(driver.map(made.address, bytes, 0, made.handle, 0), "cuMemMap");
      is_mapped = true;
      const cuda::Access access{{cuda::kOnDevice, cuda_device_}, cuda::kReadAndWrite};
      cuda::check(driver.set_access(made.address, bytes, &access, 1), "cuMemSetAccess");
      return made;
    } catch (...) {
      const cl::Buffer released(made.buffer);
      if (!is_mapped && made.address != 0)
        (void)driver.unreserve(std::exchange(made.address, 0), bytes);
      release(made);
      throw;
    }
  }

  // An import that succeeds takes the descriptor over.
  cl_mem import_buffer(int descriptor, uint64_t bytes) const {
    const std::array<cl_ulong, 6> properties{kOpaqueDescriptor,
                                             static_cast<cl_ulong>(descriptor),
                                             kDeviceList,
                                             reinterpret_cast<cl_ulong>(device_),
                                             0,
                                             0};
    cl_int code = CL_SUCCESS;
    const cl_mem buffer =
        create_buffer_(context_, properties.data(), CL_MEM_READ_WRITE, bytes, nullptr, &code);
    if (code != CL_SUCCESS) close(descriptor);
    check_cl(code, "clCreateBufferWithProperties (of CUDA's memory)");
    return buffer;
  }

  const cl_device_id device_;
  const cl_context context_;
  const CreateBuffer create_buffer_;
  const int number_;
  cuda::DeviceNumber cuda_device_ = 0;
  size_t granularity_ = 0;
  std::mutex mutex_;
  cuda::Context primary_ = nullptr;             // guarded by mutex_
  cuda::Stream copies_ = nullptr;               // guarded by mutex_, as what follows
  std::set<std::pair<Address, int>> admitted_;  // segments and devices' numbers; guarded by mutex_
};

}  // namespace

std::unique_ptr<SharedMemory> make_cuda_memory(const Capabilities& caps, cl_device_id device,
                                               cl_context context) {
  if (caps.vendor.find("NVIDIA") == std::string::npos)
    fail(TB_E_UNAVAILABLE, "{} is not NVIDIA's", caps.name);
  const View<cl::Device> view(device);
  check_extensions(*view);
  std::vector<cl_uint> types;
  check_cl(view->getInfo(kImportTypes, &types), "clGetDeviceInfo (import types)");
  if (std::ranges::find(types, kOpaqueDescriptor) == types.end())
    fail(TB_E_UNAVAILABLE, "the OpenCL driver imports no descriptors");
  const auto create_buffer =
      reinterpret_cast<CreateBuffer>(detail::look_up("clCreateBufferWithProperties"));
  return std::make_unique<CudaMemory>(device, context, create_buffer, number_of(*view));
}

}  // namespace ocltensor::opencl
