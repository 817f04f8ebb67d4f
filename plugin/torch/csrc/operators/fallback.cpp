// Operators that the device does not have: an error that says so, or the CPU.
#include "fallback.h"

#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <mutex>
#include <string_view>
#include <unordered_map>

#include "base/call_plan.h"
#include "base/config.h"
#include "operator.h"
#include "profiler/traced_fallback.h"
#include "torch_ocl/torch_ocl.h"

namespace torch_ocl {
namespace {

struct Counts {
  std::mutex mutex;
  std::unordered_map<std::string, uint64_t> by_operator;
};
Counts& counts() {
  static Counts& c = *new Counts;
  return c;
}

// Why falling back would silently give wrong results; null: it would not.
const char* obstacle_of(const c10::OperatorHandle& op) {
  std::string_view name = op.schema().name();
  if (constexpr std::string_view kOwn = "aten::"; name.starts_with(kOwn))
    name.remove_prefix(kOwn.size());
  const ocltensor::Operator* row = ocltensor::find_operator(std::string(name) + ".out");
  return row == nullptr ? nullptr : ocltensor::fallback_obstacle(*row);
}

// Operators that ATen composes for every device by reading tensors on the host, where a device's
// memory cannot be read. They count as missing here, and run on the CPU if the user allows it.
constexpr const char* kReadOnTheHost[] = {"_grid_sampler_2d_cpu_fallback",
                                          "_grid_sampler_2d_cpu_fallback_backward",
                                          "_reshape_from_tensor",
                                          "_saturate_weight_to_fp16",
                                          "_sobol_engine_draw",
                                          "_sobol_engine_ff_",
                                          "_sobol_engine_initialize_state_",
                                          "_sobol_engine_scramble_",
                                          "choose_qparams_optimized",
                                          "range.out_"};

void refuse_mixed_devices(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const size_t count = op.schema().arguments().size();
  for (const c10::IValue& value : at::ArrayRef<c10::IValue>(stack).slice(stack.size() - count)) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor& tensor = value.toTensor();
    TORCH_CHECK(tensor.device().type() == kOcl || tensor.dim() == 0, op.schema().operator_name(),
                ": Expected all tensors to be on the same device, but found one on ",
                tensor.device(), " beside ocl");
  }
}

// PyTorch itself computes with single float64 numbers: GradScaler with its scale, comparisons of
// means. Where the device has no float64 the host computes these, whatever the setting says.
bool is_float64_number(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const size_t arguments = op.schema().arguments().size();
  bool any = false;
  for (const c10::IValue& value :
       at::ArrayRef<c10::IValue>(stack).slice(stack.size() - arguments)) {
    if (value.isTensorList()) return false;
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor& tensor = value.toTensor();
    if (tensor.numel() != 1) return false;
    any = any || (tensor.scalar_type() == at::kDouble && lacks_float64(tensor));
  }
  return any;
}

void count(const c10::OperatorHandle& op, const char* reason) {
  const std::string name = c10::toString(op.operator_name());
  bool first = false;
  {
    std::lock_guard lock(counts().mutex);
    first = counts().by_operator[name]++ == 0;
  }
  if (first)
    TORCH_WARN("The operator '", name, "' runs on the CPU instead of ocl: ", reason,
               " (this message appears once per operator)");
}

void boxed_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  fall_back(op, *stack, "it has no OpenCL kernel");
}

}  // namespace

bool lacks_float64(const at::Tensor& tensor) {
  if (tensor.device().type() != kOcl) return false;
  tb_device_properties properties{};
  properties.struct_size = sizeof properties;
  call_api("device properties", api().device->properties, tensor.device().index(), &properties);
  return (properties.features & TB_FEATURE_FP64) == 0;
}

std::vector<std::pair<std::string, uint64_t>> fallback_counts() {
  std::lock_guard lock(counts().mutex);
  return {counts().by_operator.begin(), counts().by_operator.end()};
}

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack& stack, const char* reason) {
  const std::string name = c10::toString(op.operator_name());
  const char* obstacle = obstacle_of(op);
  if (obstacle == nullptr && is_float64_number(op, stack)) {
    refuse_mixed_devices(op, stack);
    const TracedFallback traced(name);
    return at::native::cpu_fallback(op, &stack, true);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(obstacle == nullptr, "The operator '", name,
                              "' is not implemented for the ocl device: ", reason,
                              ". It cannot run on the CPU instead, because ", obstacle, ".");
  TORCH_CHECK_NOT_IMPLEMENTED(
      ocltensor::config::get_bool(ocltensor::config::Knob::EnableFallback), "The operator '", name,
      "' is not implemented for the ocl device: ", reason,
      ". Set the environment variable OCLTENSOR_ENABLE_FALLBACK=1 to run it on the CPU instead "
      "(slower than on the device).");
  refuse_mixed_devices(op, stack);
  count(op, reason);
  const TracedFallback traced(name);
  at::native::cpu_fallback(op, &stack, true);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_fallback>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char* name : kReadOnTheHost)
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&boxed_fallback>());
}

}  // namespace torch_ocl
