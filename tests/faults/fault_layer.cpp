// An OpenCL layer (OPENCL_LAYERS) that makes the Nth call fail: every function of the runtime's
// table but releases is counted, and call number N returns an error without reaching the driver.
//   FAULT_AT=N in the environment arms it from the start; fault_arm(N) and fault_count() control it
//   within a process.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>

namespace {

std::atomic<long> calls{0};
std::atomic<long> fail_at{0};
cl_icd_dispatch target;
cl_icd_dispatch layer;

bool hit() { return ++calls == fail_at.load(); }

// A function that returns a code fails with CL_OUT_OF_RESOURCES; one that returns an object with
// NULL and a code.
template <auto Member, typename Function>
struct Wrapper;
template <auto Member, typename R, typename... Args>
struct Wrapper<Member, R(CL_API_CALL*)(Args...)> {
  static R CL_API_CALL call(Args... args) {
    if (!hit()) return (target.*Member)(args...);
    if constexpr (std::is_pointer_v<R>) {
      cl_int* code = std::get<sizeof...(Args) - 1>(std::tuple<Args...>(args...));
      if (code != nullptr) *code = CL_OUT_OF_HOST_MEMORY;
      return nullptr;
    } else {
      return CL_OUT_OF_RESOURCES;
    }
  }
};

template <auto Member, typename Function>
void wrap(Function cl_icd_dispatch::*) {
  layer.*Member = &Wrapper<Member, Function>::call;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void fault_arm(long n) {
  calls = 0;
  fail_at = n;
}
__attribute__((visibility("default"))) long fault_count() { return calls; }

__attribute__((visibility("default"))) cl_int clGetLayerInfo(cl_layer_info what, size_t capacity,
                                                             void* value, size_t* size) {
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  if (size != nullptr) *size = sizeof version;
  if (value != nullptr && capacity >= sizeof version) std::memcpy(value, &version, sizeof version);
  return CL_SUCCESS;
}

__attribute__((visibility("default"))) cl_int clInitLayer(cl_uint entries,
                                                          const cl_icd_dispatch* below,
                                                          cl_uint* entries_out,
                                                          const cl_icd_dispatch** above) {
  const size_t bytes = entries * sizeof(void*);
  std::memcpy(static_cast<void*>(&target), below, bytes < sizeof target ? bytes : sizeof target);
  layer = target;
#define X(name) wrap<&cl_icd_dispatch::name>(&cl_icd_dispatch::name);
  X(clGetPlatformIDs)
  X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext)
      X(clCreateCommandQueue) X(clCreateBuffer) X(clCreateProgramWithSource)
          X(clCreateProgramWithBinary) X(clBuildProgram) X(clGetProgramInfo)
              X(clGetProgramBuildInfo) X(clCreateKernel) X(clSetKernelArg) X(clGetKernelInfo)
                  X(clGetKernelWorkGroupInfo) X(clEnqueueNDRangeKernel) X(clEnqueueReadBuffer)
                      X(clEnqueueWriteBuffer) X(clEnqueueCopyBuffer) X(clEnqueueFillBuffer)
                          X(clEnqueueMapBuffer) X(clEnqueueUnmapMemObject)
                              X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList)
                                  X(clFlush) X(clFinish) X(clWaitForEvents) X(clGetEventInfo)
                                      X(clGetEventProfilingInfo)
#undef X
                                          if (const char* at = std::getenv("FAULT_AT")) fail_at =
                                              std::atol(at);
  *entries_out = sizeof layer / sizeof(void*) < entries ? sizeof layer / sizeof(void*) : entries;
  *above = &layer;
  return CL_SUCCESS;
}

}  // extern "C"
