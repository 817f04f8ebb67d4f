// What a device can do and which kernels suit it: queried once, then corrected by a table of driver
// facts. Operators read these fields, never a vendor's name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/driver/opencl.h"
#include "runtime/driver/provider_facts.h"

namespace ocltensor::opencl {

// The two styles in which kernels are written for performance.
enum class KernelStyle : uint8_t {
  Cpu,  // one work-item sweeps a row or tile with float16 vectors; no local memory
  Gpu,  // many work-items, a few elements each, local memory, coalesced access
};

// How a program multiplies four pairs of bytes and adds the products by one instruction: numbers of
// kernels/include/int8_dots.h.
enum class IntegerDot : uint8_t {
  None,
  Ptx,       // NVIDIA's dp4a, by inline assembly
  Khronos,   // cl_khr_integer_dot_product, which says that it is accelerated
  Amd,       // v_dot4_i32_i8, by clang's built-in
  AmdMixed,  // v_dot4_i32_iu8, the same of RDNA 3 and 4
};

inline constexpr uint32_t kAllSteps = 64;  // more than any tile has

struct Capabilities {
  std::string name, vendor, platform, platform_version, driver_version, language_version;
  cl_device_type type = 0;
  uint32_t compute_units = 1;
  uint32_t clock_mhz = 0;
  uint32_t max_work_group_size = 1;
  uint32_t kernel_work_group = 0;  // of kernels that declare no size, if OCLTENSOR_CAPS lowers it
  uint64_t global_memory = 0;
  uint64_t largest_allocation = 0;
  uint64_t local_memory = 0;       // of a work-group
  uint64_t unit_local_memory = 0;  // that work-groups of a compute unit share; 0: not known
  bool fp64 = false;
  uint32_t item_registers = 255;       // of 32 bits, of a work-item, as far as it is known
  uint32_t steps_at_once = kAllSteps;  // of a tile in local memory that loops are unrolled by
  bool fp16_arithmetic = false;
  bool subgroups = false;
  std::vector<uint32_t> subgroup_sizes;  // that the compiler chooses among; empty: not known
  IntegerDot integer_dot = IntegerDot::None;
  bool int64_atomics = false;
  bool exact_division = false;  // a GPU that rounds float division and roots right if asked to
  bool unified_memory = false;
  bool host_addresses = false;  // the host may use a buffer's memory while no command does

  // From the table of driver facts.
  KernelStyle style = KernelStyle::Gpu;
  bool scalar_trigonometry = false;  // vector sin, cos and tan are wrong for large arguments
  bool structs_by_value = true;      // kernel parameters may be structures
  bool indexed_structures = true;    // else each work-item copies them, where a variable indexes
  bool timestamps = true;            // profiling queues stamp their commands
  bool finish_waits = true;          // clFinish waits for all commands of its queue
  bool launch_thread = false;        // streams submit launches by threads of their own
  bool deferred_builds = false;      // at least while their programs are built
  bool slow_compiler = false;        // tenths of a second per program, one at a time in a process
  bool trusted_compiler = true;      // else builders are first, since it ends processes
  // Kernels are compiled at their launches, for the size of the work-group, unless this variable
  // is "0": then only those that no program's binary was asked of.
  const char* launch_compiler = nullptr;
  bool loads_at_exit = false;        // programs can be made of binaries after its exit handlers ran
  uint32_t longest_kernel_name = 0;  // 0: any length
  bool slow_declarations = false;    // of OpenCL C's functions: kernels bring their own, if allowed
  bool outlined_kernels = false;  // kernels of one item are functions: others are compiled thrice
  std::string build_options = "-cl-std=CL1.2";

  ProviderFacts facts;  // what only a vendor's provider wants to know

  // What the settings take from the device (caps.h).
  std::string limits;               // as text: "local_memory=32768,fp64=0"; empty: nothing
  std::vector<const char*> hidden;  // extensions that programs shall not see
  bool is_capped = false;  // launches beyond the limits are refused here, as the driver would not
  bool local_memory_capped = false;  // else the driver decides, which may take more than it reports

  // Whether a work-item keeps tens of numbers in registers.
  bool register_tiles() const { return item_registers >= 64; }
  // Whether it keeps a hundred, with what is loaded for them.
  bool large_register_tiles() const { return item_registers >= 160; }

  // What a cached binary depends on besides source and options.
  std::string identity() const { return name + "|" + driver_version + "|" + platform_version; }
};

Capabilities query_capabilities(const cl::Platform& platform, const cl::Device& device);

// What a provider asks beside. It may correct what the portable queries cannot tell, and keeps the
// rest as facts of its own. `extensions` begins and ends with a blank.
using ProviderQuestion = void (*)(const cl::Device& device, const std::string& extensions,
                                  Capabilities& caps);
// Those of all providers; declared low, and defined by the table of providers.
std::span<const ProviderQuestion> provider_questions();

}  // namespace ocltensor::opencl
