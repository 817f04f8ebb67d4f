// An OpenCL layer (OPENCL_LAYERS) that makes any driver answer as another device and runs nothing:
// each program "builds" at once and is written down, each command is a marker. Results are zeros,
// but a host asks for the programs and launches that it would ask for on that device.
//
//   FARM_DEVICE=FILE   lines KEY VALUE, as devices.py writes them: kAnswers and kTexts below
//   FARM_DUMP=FOLDER   HASH.cl (source), HASH.opt (options), launches.PID: HASH KERNEL LOCAL GLOBAL
//                      BYTES, once for each size of work-groups; bytes are those of local arguments
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

// Objects of ours, which only functions of ours ever see. They are leaked: addresses stay unique.
struct NullProgram {
  cl_context context;
  std::string source, hash;
};
struct NullKernel {
  NullProgram* program;
  std::string name;
  std::map<cl_uint, size_t> local_arguments;
};
NullProgram* ours(cl_program program) { return reinterpret_cast<NullProgram*>(program); }
NullKernel* ours(cl_kernel kernel) { return reinterpret_cast<NullKernel*>(kernel); }

// Threads of the host may call until the process has ended.
struct State {
  cl_icd_dispatch below{}, above{};
  std::mutex mutex;
  std::map<std::string, std::string> device;
  std::set<std::string> launched;
  std::string folder;
};
State& state() {
  static State& state = *new State;
  return state;
}

// ---- the device -----------------------------------------------------------------------------
enum class Kind : uint8_t { Size, Ulong, Uint };
struct Answer {
  cl_device_info what;
  const char* key;
  Kind kind;
};
constexpr Answer kAnswers[] = {
    {CL_DEVICE_TYPE, "type", Kind::Ulong},
    {CL_DEVICE_SINGLE_FP_CONFIG, "float32", Kind::Ulong},
    {CL_DEVICE_MAX_WORK_GROUP_SIZE, "work_group", Kind::Size},
    {CL_DEVICE_LOCAL_MEM_SIZE, "local_memory", Kind::Ulong},
    {CL_DEVICE_GLOBAL_MEM_SIZE, "global_memory", Kind::Ulong},
    {CL_DEVICE_MAX_MEM_ALLOC_SIZE, "largest_allocation", Kind::Ulong},
    {CL_DEVICE_MAX_COMPUTE_UNITS, "compute_units", Kind::Uint},
    {CL_DEVICE_MAX_CLOCK_FREQUENCY, "clock", Kind::Uint},
    {CL_DEVICE_HOST_UNIFIED_MEMORY, "unified_memory", Kind::Uint},
    {0x4000, "compute_capability_major", Kind::Uint},  // cl_nv_device_attribute_query
    {0x4001, "compute_capability_minor", Kind::Uint},
    {0x4003, "warp", Kind::Uint},
    {0x4043, "wavefront", Kind::Uint},  // cl_amd_device_attribute_query
};
// cl_intel_required_subgroup_size: a list of size_t.
constexpr cl_device_info kSubGroupSizes = 0x4108;
struct Text {
  cl_device_info what;
  const char* key;
};
constexpr Text kTexts[] = {
    {CL_DEVICE_NAME, "name"},
    {CL_DEVICE_VENDOR, "vendor"},
    {CL_DRIVER_VERSION, "driver"},
    {CL_DEVICE_OPENCL_C_VERSION, "language"},
    {CL_DEVICE_EXTENSIONS, "extensions"},
};

cl_int answer(const void* data, size_t size, size_t capacity, void* value, size_t* size_out) {
  if (size_out != nullptr) *size_out = size;
  if (value == nullptr) return CL_SUCCESS;
  if (capacity < size) return CL_INVALID_VALUE;
  std::memcpy(value, data, size);
  return CL_SUCCESS;
}
cl_int answer(const std::string& text, size_t capacity, void* value, size_t* size_out) {
  return answer(text.c_str(), text.size() + 1, capacity, value, size_out);
}
template <typename T>
cl_int answer_number(T number, size_t capacity, void* value, size_t* size_out) {
  return answer(&number, sizeof number, capacity, value, size_out);
}

const std::string* said(const char* key) {
  const auto found = state().device.find(key);
  return found == state().device.end() ? nullptr : &found->second;
}

cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t capacity,
                               void* value, size_t* size) {
  for (const Text& text : kTexts)
    if (text.what == what)
      if (const std::string* is = said(text.key)) return answer(*is, capacity, value, size);
  if (const std::string* is = what == kSubGroupSizes ? said("sub_groups") : nullptr) {
    std::istringstream numbers(*is);
    std::vector<size_t> sizes;
    for (size_t one = 0; numbers >> one;) sizes.push_back(one);
    return answer(sizes.data(), sizes.size() * sizeof(size_t), capacity, value, size);
  }
  for (const Answer& row : kAnswers) {
    const std::string* is = row.what == what ? said(row.key) : nullptr;
    if (is == nullptr) continue;
    const uint64_t number = std::strtoull(is->c_str(), nullptr, 0);
    switch (row.kind) {
      case Kind::Size: return answer_number(static_cast<size_t>(number), capacity, value, size);
      case Kind::Ulong: return answer_number(static_cast<cl_ulong>(number), capacity, value, size);
      case Kind::Uint: return answer_number(static_cast<cl_uint>(number), capacity, value, size);
    }
  }
  return state().below.clGetDeviceInfo(device, what, capacity, value, size);
}

cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t capacity,
                                 void* value, size_t* size) {
  const std::string* name = what == CL_PLATFORM_NAME ? said("platform") : nullptr;
  if (name != nullptr) return answer(*name, capacity, value, size);
  return state().below.clGetPlatformInfo(platform, what, capacity, value, size);
}

// ---- programs -------------------------------------------------------------------------------
std::string hash_of(const std::string& text) {
  uint64_t a = 1469598103934665603ULL, b = 88172645463325252ULL;
  for (const char letter : text) {
    a = (a ^ static_cast<unsigned char>(letter)) * 1099511628211ULL;
    b = (b + static_cast<unsigned char>(letter)) * 6364136223846793005ULL + 1442695040888963407ULL;
  }
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(a ^ (b >> 7)));
  return name;
}

// Under another name first: several processes write the same programs.
void write_once(const std::string& path, const std::string& text) {
  if (access(path.c_str(), F_OK) == 0) return;
  const std::string part = path + "." + std::to_string(getpid());
  std::ofstream(part, std::ios::binary) << text;
  (void)std::rename(part.c_str(), path.c_str());
}

cl_program CL_API_CALL with_source(cl_context context, cl_uint count, const char** parts,
                                   const size_t* lengths, cl_int* code) {
  auto* program = new NullProgram{context, {}, {}};
  for (cl_uint i = 0; i < count; ++i)
    program->source += lengths != nullptr && lengths[i] != 0 ? std::string(parts[i], lengths[i])
                                                             : std::string(parts[i]);
  if (code != nullptr) *code = CL_SUCCESS;
  return reinterpret_cast<cl_program>(program);
}

// Nothing that another process compiled may stand for a program that is to be seen.
cl_program CL_API_CALL with_binary(cl_context, cl_uint, const cl_device_id*, const size_t*,
                                   const unsigned char**, cl_int* status, cl_int* code) {
  if (status != nullptr) *status = CL_INVALID_BINARY;
  if (code != nullptr) *code = CL_INVALID_BINARY;
  return nullptr;
}

cl_int CL_API_CALL build(cl_program handle, cl_uint, const cl_device_id*, const char* options,
                         void(CL_CALLBACK* done)(cl_program, void*), void* user) {
  NullProgram& program = *ours(handle);
  const std::string text = options != nullptr ? options : "";
  const std::string hash = hash_of(text + "\n" + program.source);
  write_once(state().folder + "/" + hash + ".cl", program.source);
  write_once(state().folder + "/" + hash + ".opt", text);
  {
    const std::lock_guard lock(state().mutex);
    program.hash = hash;
  }
  if (done != nullptr) done(handle, user);
  return CL_SUCCESS;
}

cl_int CL_API_CALL keep_program(cl_program) { return CL_SUCCESS; }
cl_int CL_API_CALL keep_kernel(cl_kernel) { return CL_SUCCESS; }

cl_int CL_API_CALL program_info(cl_program program, cl_program_info what, size_t capacity,
                                void* value, size_t* size) {
  switch (what) {
    case CL_PROGRAM_BINARY_SIZES: return answer_number(size_t{0}, capacity, value, size);
    case CL_PROGRAM_CONTEXT: return answer_number(ours(program)->context, capacity, value, size);
    case CL_PROGRAM_SOURCE: return answer(ours(program)->source, capacity, value, size);
    default: return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL build_info(cl_program, cl_device_id, cl_program_build_info what, size_t capacity,
                              void* value, size_t* size) {
  if (what == CL_PROGRAM_BUILD_STATUS)
    return answer_number(cl_build_status{CL_BUILD_SUCCESS}, capacity, value, size);
  return answer(std::string(), capacity, value, size);
}

// ---- kernels --------------------------------------------------------------------------------
cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* code) {
  if (code != nullptr) *code = CL_SUCCESS;
  return reinterpret_cast<cl_kernel>(new NullKernel{ours(program), name, {}});
}

cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
  if (value != nullptr) return CL_SUCCESS;
  const std::lock_guard lock(state().mutex);
  ours(kernel)->local_arguments[index] = size;
  return CL_SUCCESS;
}

cl_int CL_API_CALL kernel_info(cl_kernel handle, cl_kernel_info what, size_t capacity, void* value,
                               size_t* size) {
  const NullKernel& kernel = *ours(handle);
  switch (what) {
    case CL_KERNEL_FUNCTION_NAME: return answer(kernel.name, capacity, value, size);
    case CL_KERNEL_PROGRAM: return answer_number(kernel.program, capacity, value, size);
    case CL_KERNEL_CONTEXT: return answer_number(kernel.program->context, capacity, value, size);
    case CL_KERNEL_NUM_ARGS: return answer_number(cl_uint{16}, capacity, value, size);
    default: return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL argument_info(cl_kernel, cl_uint, cl_kernel_arg_info, size_t, void*, size_t*) {
  return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
}

cl_int CL_API_CALL group_info(cl_kernel, cl_device_id device, cl_kernel_work_group_info what,
                              size_t capacity, void* value, size_t* size) {
  const size_t three[3] = {0, 0, 0};
  switch (what) {
    case CL_KERNEL_WORK_GROUP_SIZE:
      return device_info(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, capacity, value, size);
    case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
      return answer_number(size_t{32}, capacity, value, size);
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE:
      return answer(three, sizeof three, capacity, value, size);
    default: return answer_number(cl_ulong{0}, capacity, value, size);
  }
}

// ---- commands -------------------------------------------------------------------------------
cl_int marker(cl_command_queue queue, cl_uint count, const cl_event* wait, cl_event* event) {
  return state().below.clEnqueueMarkerWithWaitList(queue, count, wait, event);
}

std::string joined(const size_t* sizes, cl_uint count) {
  std::string text;
  for (cl_uint i = 0; i < count; ++i)
    text += (i != 0 ? "x" : "") + std::to_string(sizes != nullptr ? sizes[i] : 0);
  return text;
}

cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel handle, cl_uint dimensions,
                          const size_t*, const size_t* global, const size_t* local, cl_uint count,
                          const cl_event* wait, cl_event* event) {
  {
    const std::lock_guard lock(state().mutex);
    const NullKernel& kernel = *ours(handle);
    const std::string key =
        kernel.program->hash + " " + kernel.name + " " + joined(local, dimensions);
    size_t bytes = 0;
    for (const auto& [index, size] : kernel.local_arguments) bytes += size;
    if (state().launched.insert(key).second)
      std::ofstream(state().folder + "/launches." + std::to_string(getpid()), std::ios::app)
          << key << " " << joined(global, dimensions) << " " << bytes << "\n";
  }
  return marker(queue, count, wait, event);
}

cl_int CL_API_CALL read(cl_command_queue queue, cl_mem, cl_bool, size_t, size_t size, void* target,
                        cl_uint count, const cl_event* wait, cl_event* event) {
  std::memset(target, 0, size);
  return marker(queue, count, wait, event);
}
cl_int CL_API_CALL write(cl_command_queue queue, cl_mem, cl_bool, size_t, size_t, const void*,
                         cl_uint count, const cl_event* wait, cl_event* event) {
  return marker(queue, count, wait, event);
}
cl_int CL_API_CALL copy(cl_command_queue queue, cl_mem, cl_mem, size_t, size_t, size_t,
                        cl_uint count, const cl_event* wait, cl_event* event) {
  return marker(queue, count, wait, event);
}
cl_int CL_API_CALL fill(cl_command_queue queue, cl_mem, const void*, size_t, size_t, size_t,
                        cl_uint count, const cl_event* wait, cl_event* event) {
  return marker(queue, count, wait, event);
}

void replace(cl_icd_dispatch& table) {
  table.clGetDeviceInfo = device_info;
  table.clGetPlatformInfo = platform_info;
  table.clCreateProgramWithSource = with_source;
  table.clCreateProgramWithBinary = with_binary;
  table.clBuildProgram = build;
  table.clRetainProgram = keep_program;
  table.clReleaseProgram = keep_program;
  table.clGetProgramInfo = program_info;
  table.clGetProgramBuildInfo = build_info;
  table.clCreateKernel = create_kernel;
  table.clRetainKernel = keep_kernel;
  table.clReleaseKernel = keep_kernel;
  table.clSetKernelArg = set_argument;
  table.clGetKernelInfo = kernel_info;
  table.clGetKernelArgInfo = argument_info;
  table.clGetKernelWorkGroupInfo = group_info;
  table.clEnqueueNDRangeKernel = launch;
  table.clEnqueueReadBuffer = read;
  table.clEnqueueWriteBuffer = write;
  table.clEnqueueCopyBuffer = copy;
  table.clEnqueueFillBuffer = fill;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) cl_int clGetLayerInfo(cl_layer_info what, size_t capacity,
                                                             void* value, size_t* size) {
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  return answer_number(cl_layer_api_version{CL_LAYER_API_VERSION_100}, capacity, value, size);
}

__attribute__((visibility("default"))) cl_int clInitLayer(cl_uint entries,
                                                          const cl_icd_dispatch* below,
                                                          cl_uint* entries_out,
                                                          const cl_icd_dispatch** above) {
  State& s = state();
  const size_t bytes = entries * sizeof(void*);
  std::memcpy(static_cast<void*>(&s.below), below, bytes < sizeof s.below ? bytes : sizeof s.below);
  s.above = s.below;
  const char* device = std::getenv("FARM_DEVICE");
  const char* folder = std::getenv("FARM_DUMP");
  if (device != nullptr && folder != nullptr) {
    std::ifstream file(device);
    for (std::string line; std::getline(file, line);)
      if (const size_t space = line.find(' '); space != std::string::npos)
        s.device[line.substr(0, space)] = line.substr(space + 1);
    s.folder = folder;
    replace(s.above);
  }
  *entries_out =
      sizeof s.above / sizeof(void*) < entries ? sizeof s.above / sizeof(void*) : entries;
  *above = &s.above;
  return CL_SUCCESS;
}

}  // extern "C"
