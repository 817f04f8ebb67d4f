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

c10::OperatorHandle aten(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
}

// aten::convolution_backward wants the size of the bias behind grad_output, input and weight.
void add_bias_sizes(torch::jit::Stack& stack) {
  const auto arguments = stack.end() - 10;
  const at::Tensor weight = arguments[2].toTensor();
  const int64_t size =
      arguments[6].toBool() ? weight.size(1) * arguments[8].toInt() : weight.size(0);
  stack.insert(arguments + 3, std::vector<int64_t>{size});
}

// What the CPU has under another name: operators that ATen keeps for devices outside of PyTorch,
// and one whose schema does not say that it changes statistics, which would not be copied back.
c10::OperatorHandle on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const c10::OperatorName& name = op.operator_name();
  if (name.name == "aten::convolution_overrideable" && name.overload_name.empty())
    return aten("aten::convolution");
  if (name.name == "aten::convolution_backward_overrideable" && name.overload_name.empty()) {
    add_bias_sizes(stack);
    return aten("aten::convolution_backward");
  }
  const bool is_out = name.overload_name == "out";
  if (name.name != "aten::native_batch_norm" || !(is_out || name.overload_name.empty())) return op;
  constexpr const char* kLegit = "aten::_native_batch_norm_legit";
  const auto mean = stack.end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size()) + 3;
  if (mean->isTensor() && mean->toTensor().defined()) return aten(kLegit, is_out ? "out" : "");
  stack.erase(mean, mean + 2);
  return aten(kLegit, is_out ? "no_stats_out" : "no_stats");
}

// ATen's operator for a row of the plugin's table; its functional form has an overload's name
// without what makes it that of an out form.
std::optional<c10::OperatorHandle> aten_of(const std::string& row, RowForm form, size_t arguments) {
  const size_t dot = row.find('.');
  std::string overload = row.substr(dot + 1);
  if (form == RowForm::Functional)
    overload = overload.ends_with("_out") ? overload.substr(0, overload.size() - 4) : "";
  const auto found =
      c10::Dispatcher::singleton().findSchema({"aten::" + row.substr(0, dot), overload});
  if (!found || found->schema().arguments().size() != arguments) return std::nullopt;
  return found;
}

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

std::optional<at::Device> device_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const size_t count = op.schema().arguments().size();
  for (const c10::IValue& value : at::ArrayRef<c10::IValue>(stack).slice(stack.size() - count)) {
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().device().type() == kOcl)
      return value.toTensor().device();
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector())
        if (tensor.defined() && tensor.device().type() == kOcl) return tensor.device();
  }
  return std::nullopt;
}

// ATen leaves results where the first tensor argument is, which may be a number on the CPU: `1 -
// x`.
void run_on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const std::optional<at::Device> device = device_of(op, stack);
  at::native::cpu_fallback(op, &stack, true);
  if (!device) return;
  for (size_t i = stack.size() - op.schema().returns().size(); i < stack.size(); ++i)
    if (c10::IValue& value = stack[i];
        value.isTensor() && value.toTensor().defined() && value.toTensor().is_cpu())
      value = value.toTensor().to(*device);
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
  const c10::OperatorHandle cpu_op = on_the_cpu(op, stack);
  const char* obstacle = obstacle_of(cpu_op);
  const bool is_single = obstacle == nullptr && is_float64_number(cpu_op, stack);
  TORCH_CHECK_NOT_IMPLEMENTED(obstacle == nullptr, "The operator '", name,
                              "' is not implemented for the ocl device: ", reason,
                              ". It cannot run on the CPU instead, because ", obstacle, ".");
  TORCH_CHECK_NOT_IMPLEMENTED(
      is_single || ocltensor::config::get_bool(ocltensor::config::Knob::EnableFallback),
      "The operator '", name, "' is not implemented for the ocl device: ", reason,
      ". Set the environment variable OCLTENSOR_ENABLE_FALLBACK=1 to run it on the CPU instead "
      "(slower than on the device).");
  refuse_mixed_devices(cpu_op, stack);
  if (!is_single) count(op, reason);
  const TracedFallback traced(name);
  run_on_the_cpu(cpu_op, stack);
}

void fall_back_row(const char* row, RowForm form, torch::jit::Stack& stack, const char* reason) {
  const auto op = aten_of(row, form, stack.size());
  TORCH_CHECK_NOT_IMPLEMENTED(op.has_value(), "The operator '", row,
                              "' is not implemented for the ocl device: ", reason,
                              ". It cannot run on the CPU instead, because PyTorch has no operator "
                              "of that name and these arguments there.");
  fall_back(*op, stack, reason);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_fallback>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char* name : kReadOnTheHost)
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&boxed_fallback>());
}

}  // namespace torch_ocl
