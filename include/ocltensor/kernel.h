// Custom kernels: a user's OpenCL C, compiled for one device, launched on its current stream.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ocltensor/tensor.h"

namespace ocltensor {

// Bytes passed by value: a packed structure, whose size is not checked, or a vector.
struct KernelBytes {
  std::span<const std::byte> bytes;
};
// A number is converted to the kernel parameter's type; a list is copied to a buffer with elements
// of the type that the parameter points to.
using KernelArgument = std::variant<Tensor, bool, int64_t, double, std::vector<int64_t>,
                                    std::vector<double>, KernelBytes>;

// Shared handle to a kernel; keeps its library alive.
class OCLTENSOR_API Kernel {
 public:
  const char* name() const { return info_.name; }
  size_t parameter_count() const { return info_.argument_count; }
  uint64_t max_work_group_size() const { return info_.max_work_group_size; }
  uint64_t preferred_work_group_multiple() const { return info_.preferred_multiple; }
  uint64_t local_memory() const { return info_.local_memory; }      // bytes
  uint64_t private_memory() const { return info_.private_memory; }  // bytes

  // Enqueues on the device's current stream. `threads` is the number of work-items in each of 1 to
  // 3 dimensions; `group`, the work-group's, divides it or is empty (the driver chooses). Tensors
  // bind one parameter each, at their first element, or two, (__global T *base, ulong byte_offset),
  // if the kernel has that many. A view that starts where the device cannot bind (plugin.h: the
  // device's alignment, 128 bytes with PoCL) needs the pair. The kernel gets memory without shapes
  // or strides: pass those as arguments. __local memory cannot be passed. Thread-safe.
  //
  // A tensor's dtype fits a pointer to its own type (bool: uchar, bfloat16: ushort, complex64:
  // float2), to a vector of it, and to the unsigned integer of an integer's size; float16 also to
  // ushort, bool to char. void* takes every tensor, for its bytes; a pointer to a type of the
  // kernel's own (a structure, a typedef) is not checked, and neither is anything of a driver that
  // does not tell the types of parameters (clGetKernelArgInfo).
  // Error TB_E_INVALID names the argument that does not fit.
  void launch(std::initializer_list<KernelArgument> arguments,
              std::initializer_list<uint64_t> threads,
              std::initializer_list<uint64_t> group = {}) const;

 private:
  friend class KernelLibrary;
  std::shared_ptr<const void> library_;
  Device device_;
  tb_kernel handle_ = nullptr;
  tb_kernel_info info_{};
};

class OCLTENSOR_API KernelLibrary {
 public:
  // Error TB_E_COMPILE with the source line and the compiler's log. `options` go to the compiler. A
  // source that was compiled before, by this process or an earlier one, is loaded.
  // `#include "ocltensor/NAME.h"` includes a header of the kernels that OpenCL's operators are made
  // of, such as types.h; these change between versions.
  static KernelLibrary compile(std::string_view source, Device device = "ocl",
                               std::string_view options = {});
  // Has other processes compile sources side by side; compile() with the same device and options
  // finds what they made. Returns at once, with how many they will compile.
  static uint32_t request(const std::vector<std::string>& sources, Device device = "ocl",
                          std::string_view options = {});
  std::vector<std::string> names() const;
  Kernel kernel(std::string_view name) const;  // Error TB_E_INVALID lists the names

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace ocltensor
