// The OpenCL entry points, loaded from libOpenCL.so.1 on first use: linking or loading the plugin
// touches no driver. The C API alone; who owns objects, or asks them, includes clhpp.h. No
// header but these two includes CL/*.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <atomic>
#include <string>

// clhpp's, for declarations.
namespace cl {
class Buffer;
class CommandQueue;
class Context;
class Device;
class Event;
class Kernel;
class Platform;
class Program;
}  // namespace cl

namespace ocltensor::opencl {

// What the project calls, itself or by clhpp. What else clhpp may call: forward.cpp.
// clang-format off
#define OCLTENSOR_CL_FUNCTIONS(X)                                                                \
  X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo)                  \
  X(clCreateContext) X(clReleaseContext) X(clCreateCommandQueue) X(clReleaseCommandQueue)        \
  X(clCreateBuffer) X(clReleaseMemObject) X(clRetainMemObject) X(clCreateProgramWithSource)      \
  X(clCreateProgramWithBinary) X(clBuildProgram) X(clGetProgramInfo) X(clGetProgramBuildInfo)    \
  X(clReleaseProgram) X(clCreateKernel) X(clReleaseKernel) X(clSetKernelArg) X(clGetKernelInfo)  \
  X(clGetKernelWorkGroupInfo) X(clEnqueueNDRangeKernel) X(clEnqueueReadBuffer)                   \
  X(clEnqueueWriteBuffer) X(clEnqueueCopyBuffer) X(clEnqueueFillBuffer) X(clEnqueueMapBuffer)    \
  X(clEnqueueUnmapMemObject) X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList)      \
  X(clFlush) X(clFinish) X(clWaitForEvents) X(clSetEventCallback) X(clGetEventInfo)              \
  X(clGetEventProfilingInfo) X(clReleaseEvent) X(clRetainEvent) X(clCreateSubBuffer)             \
  X(clCreateKernelsInProgram) X(clGetKernelArgInfo) X(clSetMemObjectDestructorCallback)          \
  X(clRetainContext) X(clRetainCommandQueue) X(clRetainProgram) X(clRetainKernel)                \
  X(clRetainDevice) X(clReleaseDevice)
// clang-format on

struct Functions {
#define X(name) decltype(&::name) name;
  OCLTENSOR_CL_FUNCTIONS(X)
#undef X
  // Of OpenCL 2.0; null where the loader is older. Named as the others are.
  // NOLINTBEGIN(readability-identifier-naming)
  void*(CL_API_CALL* clSVMAlloc)(cl_context, cl_ulong flags, size_t, cl_uint alignment);
  void(CL_API_CALL* clSVMFree)(cl_context, void*);
  // NOLINTEND(readability-identifier-naming)
};

// Of OpenCL 2.0, which the headers for 1.2 lack.
constexpr cl_device_info kSvmCapabilities = 0x1053;         // CL_DEVICE_SVM_CAPABILITIES
constexpr cl_ulong kSvmFineGrainBuffer = cl_ulong{1} << 1;  // CL_DEVICE_SVM_FINE_GRAIN_BUFFER
constexpr cl_ulong kMemSvmFineGrain = cl_ulong{1} << 10;    // CL_MEM_SVM_FINE_GRAIN_BUFFER

namespace detail {
extern std::atomic<const Functions*> loaded;  // null: not loaded
const Functions& load_functions();
// A function that is not in the table. Throws Error(TB_E_UNAVAILABLE) if the library lacks it.
void* look_up(const char* name);
}  // namespace detail

// The first call loads the library. Throws Error(TB_E_UNAVAILABLE), on each call, if there is no
// loader library.
inline const Functions& cl() {
  if (const Functions* table = detail::loaded.load(std::memory_order_acquire)) [[likely]]
    return *table;
  return detail::load_functions();
}
// Called once, when the table is loaded: the recorder of captures (runtime/observe), which is above
// this room, puts functions of its own into a few entries if OCLTENSOR_CAPTURE_ENABLED is set.
void replace_recorded_entries(Functions& table);

const char* error_name(cl_int code);  // "CL_OUT_OF_RESOURCES"

// Throws an Error that names the call and the code: TB_E_OUT_OF_MEMORY for out-of-memory codes,
// TB_E_DEVICE_LOST if the device or its memory is gone, else TB_E_INTERNAL.
void check_cl(cl_int code, const char* call);
// The same for a failure that a synchronisation reports; `detail` names the work that may have
// caused it.
[[noreturn]] void raise_async(cl_int code, const char* call, const std::string& detail);

}  // namespace ocltensor::opencl
