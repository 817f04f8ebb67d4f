// Queries devices, and corrects the answers by the table of driver facts.
#include "capabilities.h"

#include <algorithm>
#include <cctype>

#include "base/config.h"
#include "ocltensor/error.h"
#include "runtime/driver/caps.h"
#include "runtime/driver/clhpp.h"

namespace ocltensor::opencl {
namespace {

// Texts end at their first 0: some drivers give more than they fill.
std::string text(const cl::Platform& platform, cl_platform_info what) {
  std::string value;
  check_cl(platform.getInfo(what, &value), "clGetPlatformInfo");
  return value.c_str();
}

std::string text(const cl::Device& device, cl_device_info what) {
  std::string value;
  check_cl(device.getInfo(what, &value), "clGetDeviceInfo");
  std::string trimmed = value.c_str();
  while (!trimmed.empty() && std::isspace(static_cast<unsigned char>(trimmed.back())))
    trimmed.pop_back();
  return trimmed;
}

template <typename T>
T number(const cl::Device& device, cl_device_info what) {
  T value{};
  check_cl(device.getInfo(what, &value), "clGetDeviceInfo");
  return value;
}

// Facts about drivers that no query tells. A row applies if the platform's name contains its
// platform text and (if given) the device's name contains its device text; later rows win.
struct DriverFact {
  const char* platform;
  const char* device;
  const char* source;  // the source of the fact
  void (*apply)(Capabilities&);
};

constexpr DriverFact kDriverFacts[] = {
    {"Portable Computing Language", "",
     "measured on PoCL 3.1: a lane with |x| >= 2^23 spoils the others",
     [](Capabilities& c) { c.scalar_trigonometry = true; }},
    {"Portable Computing Language", "",
     "PoCL 3.1 ends the process where it cannot write NAME.so, and file names have 255 characters",
     [](Capabilities& c) { c.longest_kernel_name = 252; }},
    {"Portable Computing Language", "",
     "PoCL 3.1: 0.2 to 2 s a program; its code generation holds a lock of the process",
     [](Capabilities& c) { c.slow_compiler = true; }},
    {"Portable Computing Language", "",
     "PoCL 3.1 reads it at each launch; making a binary compiles kernels for work-groups of any "
     "size",
     [](Capabilities& c) { c.launch_compiler = "POCL_WORK_GROUP_SPECIALIZATION"; }},
    {"Portable Computing Language", "",
     "PoCL 3.1 loads binaries with dlopen; NVIDIA's driver (580) aborts in a lock of its own",
     [](Capabilities& c) { c.loads_at_exit = true; }},
    {"Portable Computing Language", "",
     "PoCL 3.1: 86 of 97 ms of a small program are the 18,000 lines of clang's opencl-c.h",
     [](Capabilities& c) { c.slow_declarations = (c.type & CL_DEVICE_TYPE_CPU) != 0; }},
    {"Portable Computing Language", "",
     "PoCL 3.1: a kernel is compiled by itself and in both functions that start its work-groups",
     [](Capabilities& c) { c.outlined_kernels = true; }},
    {"NVIDIA CUDA", "",
     "NVIDIA's driver 580: names of 1,000 characters damage the heap, those of 260 at times",
     [](Capabilities& c) { c.longest_kernel_name = 252; }},
    {"AMD Accelerated Parallel Processing", "",
     "clang 15 and 22 for gfx906, gfx1030, gfx1100 read all of local memory before a loop that is "
     "unrolled wholly, and spill 100 to 500 registers: ./run compile-farm",
     [](Capabilities& c) { c.steps_at_once = 4; }},
    {"AMD Accelerated Parallel Processing", "",
     "clang 15, as in ROCm 5: 272 to 528 bytes an item of attention's masks and strided copies",
     [](Capabilities& c) { c.indexed_structures = false; }},
    {"Intel(R) OpenCL", "",
     "IGC 1.0.12504 ended the process on 30 of 690 programs: ./run compile-farm",
     [](Capabilities& c) { c.trusted_compiler = (c.type & CL_DEVICE_TYPE_GPU) == 0; }},
    {"Intel(R) OpenCL", "", "IGC 1.0.12504: up to 512 bytes an item of the same kernels",
     [](Capabilities& c) { c.indexed_structures = (c.type & CL_DEVICE_TYPE_GPU) == 0; }},
    {"Intel(R) OpenCL", "",
     "Intel's Programmer's Reference Manuals: 128 registers of 32 bytes a thread, of 8 work-items "
     "or more; ./run compile-farm shows tiles of 128 sums in memory",
     [](Capabilities& c) {
       if ((c.type & CL_DEVICE_TYPE_GPU) != 0) c.item_registers = 128;  // not their CPU runtime
     }},
    {"ARM Platform", "",
     "Arm's Mali Offline Compiler User Guide: 64 registers of 32 bits a thread, and half of the "
     "threads then",
     [](Capabilities& c) { c.item_registers = 64; }},
    {"rusticl", "Intel", "the same GPUs", [](Capabilities& c) { c.item_registers = 128; }},
    {"rusticl", "AMD", "radeonsi's compiler is LLVM's, too",
     [](Capabilities& c) { c.steps_at_once = 4; }},
    {"rusticl", "", "Mesa 22.3 answers CL_INVALID_ARG_SIZE to every structure passed by value",
     [](Capabilities& c) { c.structs_by_value = false; }},
    {"rusticl", "", "Mesa 22.3 answers 0 to every question for a command's times",
     [](Capabilities& c) { c.timestamps = false; }},
    {"rusticl", "", "Mesa 22.3's clFinish does not wait for what clFlush has submitted before",
     [](Capabilities& c) { c.finish_waits = false; }},
    {"rusticl", "llvmpipe", "its compiler crashes on 16-wide vectors, and they would spill anyway",
     [](Capabilities& c) { c.style = KernelStyle::Gpu; }},
    {"rusticl", "llvmpipe",
     "Mesa 22.3: a product of 512 takes 6.2 s by tiles in registers, which it keeps in memory, 1.0 "
     "s "
     "without",
     [](Capabilities& c) { c.item_registers = 16; }},
};

bool contains(const std::string& haystack, const char* needle) {
  return haystack.find(needle) != std::string::npos;
}

// cl_khr_integer_dot_product: whether four packed pairs of signed bytes are multiplied and added by
// one instruction.
IntegerDot integer_dot(const std::string& extensions, const cl::Device& device) {
  if (!contains(extensions, " cl_khr_integer_dot_product ")) return IntegerDot::None;
  constexpr cl_device_info kPackedBytesAcceleration = 0x1075;
  struct Accelerated {  // cl_device_integer_dot_product_acceleration_properties_khr
    cl_bool of_signed, of_unsigned, mixed, saturating_signed, saturating_unsigned, saturating_mixed;
  } is{};
  (void)device.getInfo(kPackedBytesAcceleration, &is);  // stays so if the driver does not answer
  return is.of_signed != 0 ? IntegerDot::Khronos : IntegerDot::None;
}

// cl_intel_required_subgroup_size tells all; of AMD's devices one is known, which its driver uses.
std::vector<uint32_t> subgroup_sizes(const std::string& extensions, const cl::Device& device) {
  constexpr cl_device_info kSizesOfIntel = 0x4108, kWavefrontOfAmd = 0x4043;
  if (contains(extensions, " cl_intel_required_subgroup_size ")) {
    std::vector<size_t> sizes;
    (void)device.getInfo(kSizesOfIntel, &sizes);
    return {sizes.begin(), sizes.end()};
  }
  cl_uint width = 0;
  if (contains(extensions, " cl_amd_device_attribute_query "))
    (void)device.getInfo(kWavefrontOfAmd, &width);
  return width == 0 ? std::vector<uint32_t>{} : std::vector<uint32_t>{width};
}

// cl_amd_device_attribute_query
uint64_t unit_local_memory(const std::string& extensions, const cl::Device& device) {
  constexpr cl_device_info kOfAmd = 0x4047;
  cl_uint bytes = 0;
  if (contains(extensions, " cl_amd_device_attribute_query ")) (void)device.getInfo(kOfAmd, &bytes);
  return bytes;
}

// CPU drivers with OpenCL 2.0's fine-grained buffers (PoCL, Intel's runtime). A capture records
// calls, of which there would be none.
bool has_host_addresses(const Capabilities& c, const cl::Device& device) {
  if ((c.type & CL_DEVICE_TYPE_CPU) == 0 || !c.unified_memory || cl().clSVMAlloc == nullptr ||
      cl().clSVMFree == nullptr || config::get_bool(config::Knob::CaptureEnabled))
    return false;
  cl_ulong has = 0;  // stays so with drivers of OpenCL 1.2, which do not know the question
  (void)device.getInfo(kSvmCapabilities, &has);
  return (has & kSvmFineGrainBuffer) != 0;
}

// OCLTENSOR_KERNEL_STYLE lets one driver test both styles.
void choose_style(Capabilities& c) {
  const std::string style = config::get_string(config::Knob::KernelStyle);
  if (style.empty()) return;
  c.style = style == "cpu" ? KernelStyle::Cpu : KernelStyle::Gpu;
}

// CPU drivers need less time for a launch than a thread needs to notice it, and their own threads
// need the processors: there, only launches that wait for a slow compiler are left to it. A capture
// records the order in which threads call.
void choose_launch_thread(Capabilities& c) {
  if (!c.structs_by_value || config::get_bool(config::Knob::CaptureEnabled)) return;
  const std::string wish = config::get_string(config::Knob::LaunchThread);
  const bool is_cpu = (c.type & CL_DEVICE_TYPE_CPU) != 0;
  c.launch_thread = wish.empty() ? !is_cpu : wish == "1";
  c.deferred_builds = c.launch_thread || (wish.empty() && c.slow_compiler);
}

}  // namespace

Capabilities query_capabilities(const cl::Platform& platform, const cl::Device& device) {
  Capabilities c;
  c.name = text(device, CL_DEVICE_NAME);
  c.vendor = text(device, CL_DEVICE_VENDOR);
  c.platform = text(platform, CL_PLATFORM_NAME);
  c.platform_version = text(platform, CL_PLATFORM_VERSION);
  c.driver_version = text(device, CL_DRIVER_VERSION);
  c.language_version = text(device, CL_DEVICE_OPENCL_C_VERSION);
  c.type = number<cl_device_type>(device, CL_DEVICE_TYPE);
  c.compute_units = number<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS);
  c.clock_mhz = number<cl_uint>(device, CL_DEVICE_MAX_CLOCK_FREQUENCY);
  c.max_work_group_size =
      static_cast<uint32_t>(number<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  c.global_memory = number<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
  c.largest_allocation = number<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  c.local_memory = number<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE);
  c.unified_memory = number<cl_bool>(device, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  c.host_addresses = has_host_addresses(c, device);
  const std::string extensions = " " + text(device, CL_DEVICE_EXTENSIONS) + " ";
  c.fp64 = contains(extensions, " cl_khr_fp64 ");
  c.fp16_arithmetic = contains(extensions, " cl_khr_fp16 ");
  c.subgroups = contains(extensions, "_subgroups ");
  c.subgroup_sizes = subgroup_sizes(extensions, device);
  c.integer_dot = integer_dot(extensions, device);
  c.int64_atomics = contains(extensions, " cl_khr_int64_base_atomics ");
  // CPU drivers round right anyway.
  c.exact_division = !(c.type & CL_DEVICE_TYPE_CPU) &&
                     (number<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG) &
                      CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  if (c.type & CL_DEVICE_TYPE_CPU) c.style = KernelStyle::Cpu;
  for (const DriverFact& fact : kDriverFacts)
    if (contains(c.platform, fact.platform) && contains(c.name, fact.device)) fact.apply(c);
  choose_style(c);
  c.unit_local_memory = unit_local_memory(extensions, device);
  apply_caps(c);
  for (const ProviderQuestion ask : provider_questions()) ask(device, extensions, c);
  choose_launch_thread(c);
  check(number<cl_bool>(device, CL_DEVICE_AVAILABLE) != 0,
        "the driver says that it is not available");
  check(number<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE) != 0,
        "it has no compiler for OpenCL C");
  check(number<cl_bool>(device, CL_DEVICE_ENDIAN_LITTLE) != 0, "it is not little-endian");
  return c;
}

}  // namespace ocltensor::opencl
