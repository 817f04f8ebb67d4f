// An OpenCL layer (OPENCL_LAYERS) that makes a driver worse:
//   CRASH_ON=TEXT          clBuildProgram writes to address 0 for each program whose source
//   contains
//                          it; binaries are built as ever
//   KERNEL_WORK_GROUP=N    kernels that declare no size take N work-items in a group at most, as
//                          where registers are few
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

cl_icd_dispatch target;
cl_icd_dispatch layer;

cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id* devices,
                         const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                         void* data) {
  size_t bytes = 0;
  target.clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, nullptr, &bytes);
  std::string source(bytes, 0);
  target.clGetProgramInfo(program, CL_PROGRAM_SOURCE, bytes, source.data(), nullptr);
  const char* text = std::getenv("CRASH_ON");
  if (text != nullptr && *text != 0 && source.find(text) != std::string::npos) {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
  }
  return target.clBuildProgram(program, count, devices, options, notify, data);
}

// 0: as many as the driver says.
size_t most_items(cl_kernel kernel, cl_device_id device) {
  const char* limit = std::getenv("KERNEL_WORK_GROUP");
  if (limit == nullptr) return 0;
  size_t declared[3] = {};
  target.clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                  sizeof declared, declared, nullptr);
  return declared[0] != 0 ? 0 : std::strtoul(limit, nullptr, 10);
}

cl_int CL_API_CALL tell(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what,
                        size_t capacity, void* value, size_t* size) {
  const cl_int code = target.clGetKernelWorkGroupInfo(kernel, device, what, capacity, value, size);
  if (code != CL_SUCCESS || what != CL_KERNEL_WORK_GROUP_SIZE || value == nullptr) return code;
  size_t& items = *static_cast<size_t*>(value);
  if (const size_t most = most_items(kernel, device); most != 0 && items > most) items = most;
  return code;
}

cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint rank,
                          const size_t* offset, const size_t* global, const size_t* local,
                          cl_uint waits, const cl_event* wait, cl_event* event) {
  cl_device_id device = nullptr;
  target.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, nullptr);
  const size_t most = most_items(kernel, device);
  size_t items = 1;
  for (cl_uint i = 0; local != nullptr && i < rank; ++i) items *= local[i];
  if (most != 0 && items > most) return CL_INVALID_WORK_GROUP_SIZE;
  return target.clEnqueueNDRangeKernel(queue, kernel, rank, offset, global, local, waits, wait,
                                       event);
}

}  // namespace

extern "C" {

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
  layer.clBuildProgram = build;
  layer.clGetKernelWorkGroupInfo = tell;
  layer.clEnqueueNDRangeKernel = launch;
  *entries_out = sizeof layer / sizeof(void*) < entries ? sizeof layer / sizeof(void*) : entries;
  *above = &layer;
  return CL_SUCCESS;
}

}  // extern "C"
