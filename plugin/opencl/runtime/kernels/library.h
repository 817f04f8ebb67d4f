// Custom kernels: programs from a user's OpenCL C, and launches that bind arguments according to
// the kernel's own parameters. They go the way of operators' launches: a stream's kernel object
// remembers its arguments, and a launch thread submits them.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/driver/clhpp.h"
#include "runtime/kernels/parameter_types.h"
#include "runtime/queue/kernel.h"
#include "runtime/queue/stream.h"
#include "tensor_backend/plugin.h"

namespace ocltensor::opencl {

class Device;
class Program;

class CustomKernel {
 public:
  // `program` is built, and outlives this. `probe`: an object of the kernel, which is asked but
  // never launched.
  CustomKernel(Device& device, Program& program, cl::Kernel probe);
  ~CustomKernel();
  CustomKernel(const CustomKernel&) = delete;
  // Valid as long as the process.
  const char* name() const { return name_; }
  Device& device() const { return device_; }
  const tb_kernel_info& info() const { return info_; }  // struct_size is not set
  // Thread-safe: launches of a kernel set its arguments one after another.
  void launch(Stream& stream, std::span<const tb_value> args, const Range& range);

 private:
  struct Parameter {
    ParameterType type;  // unknown if the driver does not tell it
    std::string name;
    bool local = false;        // a pointer to __local memory
    size_t accepted = 0;       // bytes of a value that the driver took
    std::string text() const;  // "float* x"
  };
  struct Binding;
  Kernel& kernel_of(Stream& stream);
  // The kernel and the argument that comes next, for errors; made only where there is one.
  std::string where(const Binding& at) const;
  template <typename... T>
  [[noreturn]] void refuse(const Binding& at, fmt::format_string<T...> why, T&&... values) const;
  void set(Binding& to, size_t bytes, const void* value);
  // Parameters that arguments are bound to: all but those of FAULT_PARAMETERS at the end.
  size_t bound_count() const { return parameters_.size() - (fault_site_ == 0 ? 0 : 2); }
  void bind_faults(Binding& to);
  bool takes_pairs(std::span<const tb_value> args) const;
  bool binds_pairs(std::span<const tb_value> args) const;
  void bind_number(Binding& to, const tb_value& value);
  void bind_address(Binding& to, tb_address address, uint64_t bytes);
  void bind_list(Binding& to, const tb_value& value);
  void bind_bytes(Binding& to, const tb_value& value);
  void bind_tensor(Binding& to, const tb_tensor* given);

  Device& device_;
  Program& program_;
  cl::Kernel probe_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  // by the streams' places
  const char* name_;
  std::vector<Parameter> parameters_;
  int32_t fault_site_ = 0;  // not 0: its last parameters are those of kernels/include/faults.h
  tb_kernel_info info_{};
  uint64_t alignment_;  // bytes; an address that can be bound without an offset is a multiple of it
  std::mutex mutex_;
};

// Thread-safe. The constructor throws Error(TB_E_COMPILE) with the compiler's log and the source
// line. A text that another library has compiled, in this process or before it, is not compiled
// again.
class Library {
 public:
  Library(Device& device, const std::string& source, const std::string& options);
  std::span<const std::unique_ptr<CustomKernel>> kernels() const { return kernels_; }

 private:
  std::shared_ptr<Program> program_;
  std::vector<std::unique_ptr<CustomKernel>> kernels_;
};

}  // namespace ocltensor::opencl
