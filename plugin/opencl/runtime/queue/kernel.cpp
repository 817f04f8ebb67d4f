// Makes kernels, passes their arguments, and fits their work-groups.
#include "kernel.h"

#include <algorithm>
#include <memory>

#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/driver/caps.h"
#include "runtime/driver/clhpp.h"
#include "runtime/program/program.h"
#include "runtime/queue/launch_thread.h"
#include "runtime/queue/proving.h"

namespace ocltensor::opencl {
namespace {

cl_kernel create(Device& device, Program& from, const char* function) {
  const auto made = [&device]() -> uint64_t {
    const BuildCounters& count = build_counters();
    return count.builds + (device.caps().loads_at_exit ? 0 : count.loads.load());
  };
  const uint64_t before = made();
  const cl_program program = device.programs().get(from);
  // Also before exit handlers that this program's build added.
  if (made() != before) LaunchThread::stop_all_at_exit();
  cl_int code = CL_SUCCESS;
  const cl_kernel kernel = cl().clCreateKernel(program, function, &code);
  if (code != CL_SUCCESS)
    throw Error(TB_E_INTERNAL, 0,
                fmt::format("{} has no kernel {}: {}", from.name(), function, error_name(code)),
                code);
  return kernel;
}

}  // namespace

Kernel::Kernel(cl_kernel kernel, const char* name, uint32_t group_limit)
    : kernel_(kernel),
      owner_(std::make_shared<cl::Kernel>(kernel)),
      name_(name),
      is_placeholder_(kernel == nullptr),
      group_limit_(group_limit) {}

std::unique_ptr<Kernel> Kernel::made(Device& device, Program& program, const char* name) {
  const cl_kernel kernel = create(device, program, name);
  return std::make_unique<Kernel>(kernel, name, group_limit(device.caps(), device.id(), kernel));
}

void Kernel::make() {
  if (pending_build_->unproven) proving::wait(*pending_build_->program);
  kernel_ = create(pending_build_->device, *pending_build_->program, name_);
  owner_ = std::make_shared<cl::Kernel>(kernel_);
  group_limit_ = group_limit(pending_build_->device.caps(), pending_build_->device.id(), kernel_);
  is_made_.store(true, std::memory_order_release);
}

Range Kernel::halved(Range range) const {
  const auto items = [&] { return range.local[0] * range.local[1] * range.local[2]; };
  const auto even = [](size_t size) { return size % 2 == 0 ? size : 0; };
  while (items() > group_limit_) {
    size_t& widest = *std::ranges::max_element(range.local, {}, even);
    if (even(widest) == 0) break;  // a launcher's mistake, for the driver to refuse
    widest /= 2;
  }
  return range;
}

cl_int Kernel::apply(const ArgumentChanges& changes, std::string& call) const {
  return changes.for_each([&](uint32_t index, size_t bytes, const void* value) {
    const cl_int code = cl().clSetKernelArg(kernel_, index, bytes, value);
    if (code != CL_SUCCESS) [[unlikely]]
      call = fmt::format("clSetKernelArg ({}, argument {}, {} bytes)", name_, index, bytes);
    return code;
  });
}

}  // namespace ocltensor::opencl
