// OpenCL's functions for clhpp, whose inline code calls them by their names. Hidden definitions, so
// that the plugin neither exports nor imports them; each passes its arguments to what was loaded.
#include <cstddef>
#include <tuple>

#include "runtime/driver/clhpp.h"

namespace {

template <typename Function>
struct Signature;
template <typename R, typename... T>
struct Signature<R(T...)> {
  using Result = R;
  template <size_t i>
  using Parameter = std::tuple_element_t<i, std::tuple<T...>>;
};

}  // namespace

// A wrong number of parameters conflicts with the C declaration, and does not compile.
// clang-format off
#define OF(f, i) Signature<decltype(::f)>::Parameter<i> a##i
#define P1(f) OF(f, 0)
#define P2(f) P1(f), OF(f, 1)
#define P3(f) P2(f), OF(f, 2)
#define P4(f) P3(f), OF(f, 3)
#define P5(f) P4(f), OF(f, 4)
#define P6(f) P5(f), OF(f, 5)
#define P7(f) P6(f), OF(f, 6)
#define P8(f) P7(f), OF(f, 7)
#define P9(f) P8(f), OF(f, 8)
#define P10(f) P9(f), OF(f, 9)
#define P11(f) P10(f), OF(f, 10)
#define P12(f) P11(f), OF(f, 11)
#define P13(f) P12(f), OF(f, 12)
#define P14(f) P13(f), OF(f, 13)
#define A1 a0
#define A2 A1, a1
#define A3 A2, a2
#define A4 A3, a3
#define A5 A4, a4
#define A6 A5, a5
#define A7 A6, a6
#define A8 A7, a7
#define A9 A8, a8
#define A10 A9, a9
#define A11 A10, a10
#define A12 A11, a11
#define A13 A12, a12
#define A14 A13, a13
#define DEFINE(n, f, function)                                                       \
  extern "C" __attribute__((visibility("hidden"))) Signature<decltype(::f)>::Result  \
  CL_API_CALL f(P##n(f)) { return function(A##n); }
#define LOADED(n, f) DEFINE(n, f, ocltensor::opencl::cl().f)
// Those that no code of the project calls so far. Some libraries lack what shares with OpenGL.
#define OTHER(n, f) \
  DEFINE(n, f, reinterpret_cast<decltype(&::f)>(ocltensor::opencl::detail::look_up(#f)))

LOADED(1, clFinish) LOADED(1, clFlush) LOADED(1, clReleaseCommandQueue) LOADED(1, clReleaseContext)
LOADED(1, clReleaseDevice) LOADED(1, clReleaseEvent) LOADED(1, clReleaseKernel)
LOADED(1, clReleaseMemObject) LOADED(1, clReleaseProgram) LOADED(1, clRetainCommandQueue)
LOADED(1, clRetainContext) LOADED(1, clRetainDevice) LOADED(1, clRetainEvent)
LOADED(1, clRetainKernel) LOADED(1, clRetainMemObject) LOADED(1, clRetainProgram)
LOADED(2, clWaitForEvents)
LOADED(3, clCreateKernel) LOADED(3, clGetPlatformIDs) LOADED(3, clSetMemObjectDestructorCallback)
LOADED(4, clCreateCommandQueue) LOADED(4, clCreateKernelsInProgram)
LOADED(4, clEnqueueBarrierWithWaitList) LOADED(4, clEnqueueMarkerWithWaitList)
LOADED(4, clSetEventCallback) LOADED(4, clSetKernelArg)
LOADED(5, clCreateBuffer) LOADED(5, clCreateProgramWithSource) LOADED(5, clCreateSubBuffer)
LOADED(5, clGetDeviceIDs) LOADED(5, clGetDeviceInfo) LOADED(5, clGetEventInfo)
LOADED(5, clGetEventProfilingInfo) LOADED(5, clGetKernelInfo) LOADED(5, clGetPlatformInfo)
LOADED(5, clGetProgramInfo)
LOADED(6, clBuildProgram) LOADED(6, clCreateContext) LOADED(6, clEnqueueUnmapMemObject)
LOADED(6, clGetKernelArgInfo) LOADED(6, clGetKernelWorkGroupInfo) LOADED(6, clGetProgramBuildInfo)
LOADED(7, clCreateProgramWithBinary)
LOADED(9, clEnqueueCopyBuffer) LOADED(9, clEnqueueFillBuffer) LOADED(9, clEnqueueNDRangeKernel)
LOADED(9, clEnqueueReadBuffer) LOADED(9, clEnqueueWriteBuffer)
LOADED(10, clEnqueueMapBuffer)

OTHER(1, clReleaseSampler) OTHER(1, clRetainSampler) OTHER(1, clUnloadPlatformCompiler)
OTHER(2, clCreateUserEvent) OTHER(2, clGetExtensionFunctionAddressForPlatform)
OTHER(2, clSetUserEventStatus)
OTHER(3, clGetGLObjectInfo)
OTHER(4, clCreateFromGLBuffer) OTHER(4, clCreateFromGLRenderbuffer)
OTHER(5, clCreateContextFromType) OTHER(5, clCreateProgramWithBuiltInKernels)
OTHER(5, clCreateSampler) OTHER(5, clCreateSubDevices) OTHER(5, clEnqueueTask)
OTHER(5, clGetCommandQueueInfo) OTHER(5, clGetContextInfo) OTHER(5, clGetImageInfo)
OTHER(5, clGetMemObjectInfo) OTHER(5, clGetSamplerInfo)
OTHER(6, clCreateFromGLTexture) OTHER(6, clCreateImage) OTHER(6, clEnqueueAcquireGLObjects)
OTHER(6, clEnqueueReleaseGLObjects) OTHER(6, clGetSupportedImageFormats)
OTHER(7, clEnqueueMigrateMemObjects)
OTHER(8, clEnqueueFillImage)
OTHER(9, clCompileProgram) OTHER(9, clEnqueueCopyBufferToImage) OTHER(9, clEnqueueCopyImage)
OTHER(9, clEnqueueCopyImageToBuffer) OTHER(9, clLinkProgram)
OTHER(10, clEnqueueNativeKernel)
OTHER(11, clEnqueueReadImage) OTHER(11, clEnqueueWriteImage)
OTHER(12, clEnqueueMapImage)
OTHER(13, clEnqueueCopyBufferRect)
OTHER(14, clEnqueueReadBufferRect) OTHER(14, clEnqueueWriteBufferRect)
