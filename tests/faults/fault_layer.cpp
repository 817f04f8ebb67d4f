// An OpenCL layer (OPENCL_LAYERS) that makes the Nth call fail: every function of the runtime's
// table but releases is counted, and call number N returns an error without reaching the driver.
//   FAULT_AT=N in the environment arms it from the start; fault_arm(N) and fault_count() control it
//   within a process. fault_live() is the number of references to OpenCL objects that are held.
#include <atomic>
#include <cstdlib>
#include <tuple>
#include <type_traits>

#include "../support/opencl_layer.h"

namespace {

std::atomic<long> calls{0};
std::atomic<long> fail_at{0};
std::atomic<long> live{0};

bool hit() { return ++calls == fail_at.load(); }

// Did the call hand out an event?
template <typename Arg>
bool gives_event(Arg argument) {
  if constexpr (std::is_same_v<Arg, cl_event*>) return argument != nullptr;
  return false;
}

// A function that returns a code fails with CL_OUT_OF_RESOURCES; one that returns an object with
// NULL and a code. `references`: what a success adds to those held, beside the event.
template <auto Member, int references, typename Function>
struct Wrapper;
template <auto Member, int references, typename R, typename... Args>
struct Wrapper<Member, references, R(CL_API_CALL*)(Args...)> {
  static R CL_API_CALL call(Args... args) {
    const bool fails = references >= 0 && hit();
    if constexpr (std::is_pointer_v<R>) {
      cl_int* code = std::get<sizeof...(Args) - 1>(std::tuple<Args...>(args...));
      if (fails && code != nullptr) *code = CL_OUT_OF_HOST_MEMORY;
      R object = fails ? nullptr : (target.*Member)(args...);
      if (object != nullptr) live += references + (gives_event(args) + ...);
      return object;
    } else {
      const R code = fails ? CL_OUT_OF_RESOURCES : (target.*Member)(args...);
      if (code == CL_SUCCESS) live += references + (gives_event(args) + ...);
      return code;
    }
  }
};

template <auto Member, int references, typename Function>
void wrap(Function cl_icd_dispatch::*) {
  layer.*Member = &Wrapper<Member, references, Function>::call;
}

#define WRAP(references, name) \
  wrap<&cl_icd_dispatch::name, references>(&cl_icd_dispatch::name)  // NOLINT

void wrap_objects() {
  WRAP(1, clCreateContext);
  WRAP(1, clCreateCommandQueue);
  WRAP(1, clCreateBuffer);
  WRAP(1, clCreateProgramWithSource);
  WRAP(1, clCreateProgramWithBinary);
  WRAP(1, clCreateKernel);
  WRAP(1, clCreateSubBuffer);
  WRAP(1, clRetainContext);
  WRAP(1, clRetainCommandQueue);
  WRAP(1, clRetainMemObject);
  WRAP(1, clRetainProgram);
  WRAP(1, clRetainKernel);
  WRAP(1, clRetainEvent);
  WRAP(-1, clReleaseContext);
  WRAP(-1, clReleaseCommandQueue);
  WRAP(-1, clReleaseMemObject);
  WRAP(-1, clReleaseProgram);
  WRAP(-1, clReleaseKernel);
  WRAP(-1, clReleaseEvent);
}

void wrap_others() {
  WRAP(0, clGetPlatformIDs);
  WRAP(0, clGetPlatformInfo);
  WRAP(0, clGetDeviceIDs);
  WRAP(0, clGetDeviceInfo);
  WRAP(0, clBuildProgram);
  WRAP(0, clGetProgramInfo);
  WRAP(0, clGetProgramBuildInfo);
  WRAP(0, clSetKernelArg);
  WRAP(0, clGetKernelInfo);
  WRAP(0, clGetKernelWorkGroupInfo);
  WRAP(0, clGetKernelArgInfo);
  WRAP(0, clEnqueueNDRangeKernel);
  WRAP(0, clEnqueueReadBuffer);
  WRAP(0, clEnqueueWriteBuffer);
  WRAP(0, clEnqueueCopyBuffer);
  WRAP(0, clEnqueueFillBuffer);
  WRAP(0, clEnqueueMapBuffer);
  WRAP(0, clEnqueueUnmapMemObject);
  WRAP(0, clEnqueueMarkerWithWaitList);
  WRAP(0, clEnqueueBarrierWithWaitList);
  WRAP(0, clFlush);
  WRAP(0, clFinish);
  WRAP(0, clWaitForEvents);
  WRAP(0, clGetEventInfo);
  WRAP(0, clGetEventProfilingInfo);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void fault_arm(long n) {
  calls = 0;
  fail_at = n;
}
__attribute__((visibility("default"))) long fault_count() { return calls; }
__attribute__((visibility("default"))) long fault_live() { return live; }

}  // extern "C"

static void replace_entries() {
  wrap_objects();
  wrap_others();
  if (const char* at = std::getenv("FAULT_AT")) fail_at = std::strtol(at, nullptr, 10);
}
