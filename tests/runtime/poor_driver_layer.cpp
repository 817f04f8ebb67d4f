// An OpenCL layer (OPENCL_LAYERS) that makes a driver worse:
//   CRASH_ON=TEXT          clBuildProgram writes to address 0 for each program whose source has the
//                          text; binaries are built as ever
//   NO_BINARY_ARGUMENTS=1  nothing is told of the parameters of programs that are made from
//   binaries KERNEL_WORK_GROUP=N    kernels that declare no size take N work-items in a group at
//   most, as
//                          where registers are few
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "../support/opencl_layer.h"

namespace {

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

std::mutex mutex;
std::set<cl_program> from_binaries;

cl_program CL_API_CALL from_binary(cl_context context, cl_uint count, const cl_device_id* devices,
                                   const size_t* sizes, const unsigned char** binaries,
                                   cl_int* status, cl_int* code) {
  const cl_program program =
      target.clCreateProgramWithBinary(context, count, devices, sizes, binaries, status, code);
  const std::lock_guard lock(mutex);
  from_binaries.insert(program);
  return program;
}

cl_int CL_API_CALL tell_argument(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what,
                                 size_t capacity, void* value, size_t* size) {
  cl_program program = nullptr;
  target.clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof program, &program, nullptr);
  const std::lock_guard lock(mutex);
  return std::getenv("NO_BINARY_ARGUMENTS") != nullptr && from_binaries.contains(program)
             ? CL_KERNEL_ARG_INFO_NOT_AVAILABLE
             : target.clGetKernelArgInfo(kernel, index, what, capacity, value, size);
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

static void replace_entries() {
  layer.clBuildProgram = build;
  layer.clCreateProgramWithBinary = from_binary;
  layer.clGetKernelArgInfo = tell_argument;
  layer.clGetKernelWorkGroupInfo = tell;
  layer.clEnqueueNDRangeKernel = launch;
}
