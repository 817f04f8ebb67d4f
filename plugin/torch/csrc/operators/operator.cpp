// Describes ATen's tensors to base/call_plan.h, and calls the plugin through the ABI.
#include "operator.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/bitwise_xor.h>
#include <ATen/ops/view_as_real.h>

#include <array>
#include <limits>
#include <utility>

#include "base/call_plan.h"
#include "base/layouts.h"
#include "default_type.h"
#include "fallback.h"
#include "known_results.h"
#include "layouts.h"
#include "runtime/allocator.h"
#include "runtime/stream.h"

namespace torch_ocl {
namespace {

using ocltensor::TensorSpec;

using ocltensor::kMostOutputs;
using ocltensor::OutputMode;

at::IntArrayRef ref(const ocltensor::Dims& dims) { return {dims.data(), dims.size()}; }

struct ResizeContext {
  std::span<at::Tensor> targets;
  c10::DeviceIndex device;
  ocltensor::LayoutRule layout;
};

tb_status resize(void* context, uint32_t index, const int64_t* sizes, uint32_t ndim,
                 tb_tensor* tensor) {
  return ocltensor::guarded(nullptr, [&] {
    auto& c = *static_cast<ResizeContext*>(context);
    ocltensor::check(index < c.targets.size(), "there is no output {}", index);
    at::Tensor& target = c.targets[index];
    const std::array<int64_t, 2> columns{1, ndim == 2 ? sizes[0] : 0};
    const bool by_columns = ndim == 2 && c.layout == ocltensor::LayoutRule::Columns;
    target = make_tensor({sizes, ndim}, by_columns ? at::IntArrayRef(columns) : at::IntArrayRef(),
                         target.scalar_type(), c.device);
    *tensor = describe_output(target);
  });
}

}  // namespace

at::Tensor make_tensor(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type,
                       c10::DeviceIndex device) {
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  // The allocator takes the current device: only a tensor for another one needs the switch.
  c10::OptionalDeviceGuard guard;
  if (device != current_device()) guard.reset_device(c10::Device(kOcl, device));
  if (strides.empty())
    return at::detail::empty_generic(sizes, device_allocator(), keys, type, std::nullopt);
  return at::detail::empty_strided_generic(sizes, strides, device_allocator(), keys, type);
}

const ocltensor::Operator& PluginOperator::schema() {
  const ocltensor::Operator* found = schema_.load(std::memory_order_acquire);
  if (found == nullptr) [[unlikely]] {
    found = ocltensor::find_operator(handle_.name());
    TORCH_INTERNAL_ASSERT(found != nullptr, "operators.def has no ", handle_.name());
    schema_.store(found, std::memory_order_release);
  }
  return *found;
}

namespace {

// Operators within a copy run even if the user disabled them, because every fallback copies.
thread_local bool in_copy = false;
struct PartOfCopy {
  const bool before = std::exchange(in_copy, true);
  ~PartOfCopy() { in_copy = before; }
};

uint32_t call_flags() {
  uint32_t flags =
      at::globalContext().deterministicAlgorithms() ? uint32_t{TB_CALL_DETERMINISTIC} : 0u;
  if (in_copy) flags |= TB_CALL_ALWAYS;
  return flags;
}

}  // namespace

void OperatorHandle::invoke(tb_call call, const Arguments& in,
                            std::span<const tb_tensor* const> outs, c10::DeviceIndex device) {
  tb_op op = op_.load(std::memory_order_relaxed);
  ocltensor::ErrorBuffer error;
  if (op == nullptr) [[unlikely]] {
    const tb_status status = api().operators->find(name_, &op, error.get());
    if (status == TB_UNSUPPORTED) throw Declined(error.text());
    if (status != TB_OK) raise(status, name_, error.text());
    op_.store(op, std::memory_order_relaxed);
  }
  call.struct_size = sizeof call;
  call.flags = call_flags();
  call.op = op;
  call.stream = current_handle(device);
  call.args = in.values().data();
  call.arg_count = static_cast<uint32_t>(in.values().size());
  call.outs = outs.data();
  call.out_count = static_cast<uint32_t>(outs.size());
  const tb_status status = api().operators->invoke(&call, error.get());
  if (status == TB_OK) [[likely]]
    return;
  if (status == TB_UNSUPPORTED) throw Declined(error.text());
  raise(status, name_, error.text());
}

void PluginOperator::invoke(const Arguments& in, std::span<at::Tensor> outs,
                            c10::DeviceIndex device) {
  tb_tensor described[kMostOutputs];
  for (size_t i = 0; i < outs.size(); ++i) described[i] = describe_output(outs[i]);
  invoke_described(in, outs, described, device);
}

void PluginOperator::invoke_described(const Arguments& in, std::span<at::Tensor> outs,
                                      const tb_tensor* described, c10::DeviceIndex device) {
  const tb_tensor* pointers[kMostOutputs];
  for (size_t i = 0; i < outs.size(); ++i) pointers[i] = &described[i];
  ResizeContext context{outs, device, schema().layout};
  tb_call call{};
  call.resize_out = resize;
  call.resize_context = &context;
  handle_.invoke(call, in, std::span(pointers).first(outs.size()), device);
}

// PyTorch's side of run_with_outputs().
class PluginOperator::Call {
 public:
  Call(PluginOperator& op, const Arguments& in, std::span<at::Tensor> outs, bool are_given,
       c10::DeviceIndex device)
      : op_(op), in_(in), outs_(outs), are_given_(are_given), device_(device) {}

  const tb_tensor* given(size_t i) {
    if (!are_given_) return nullptr;
    const at::Tensor& out = outs_[i];
    if (out.device() != c10::Device(kOcl, device_))
      ocltensor::refuse_output_device(op_.handle_.name(), out.device().str(),
                                      c10::Device(kOcl, device_).str());
    described_[i] = is_writable(i) ? describe_output(out) : describe_lazy(out);
    return &described_[i];
  }
  bool is_writable(size_t i) const { return !outs_[i].is_conj() && !outs_[i].is_neg(); }
  void resize(size_t i, const TensorSpec& spec) {
    resize_given(outs_[i], ref(spec.sizes), spec.strides);
  }
  void use(size_t i) { targets_[i] = outs_[i]; }
  void make(size_t i, const TensorSpec& spec) {
    targets_[i] =
        make_tensor(ref(spec.sizes), ref(spec.strides), scalar_type_of(spec.dtype), device_);
    described_[i] = describe_output(targets_[i]);
  }
  void run() {
    op_.invoke_described(in_, std::span(targets_).first(outs_.size()), described_.data(), device_);
  }
  std::span<const int64_t> target_sizes(size_t i) const {
    return {targets_[i].sizes().data(), targets_[i].sizes().size()};
  }
  void store(size_t i) { copy_on_device(outs_[i], targets_[i]); }
  void take(size_t i) { outs_[i] = std::move(targets_[i]); }

 private:
  PluginOperator& op_;
  const Arguments& in_;
  const std::span<at::Tensor> outs_;
  const bool are_given_;
  const c10::DeviceIndex device_;
  std::array<at::Tensor, kMostOutputs> targets_;  // the tensors that the plugin writes to
  std::array<tb_tensor, kMostOutputs> described_;
};

void PluginOperator::run(Arguments& in, std::span<at::Tensor> outs, OutputMode mode) {
  const ocltensor::Operator& op = schema();
  const bool given = mode != OutputMode::Allocate;
  try {
    const c10::DeviceIndex device =
        in.settle(handle_.name(), given ? outs[0].device().index() : current_device(),
                  ocltensor::takes_scalar_tensors(op));
    use_default_type(op, in, device);
    const uint64_t key = outs.size() == 1 ? known_key(op, in) : 0;
    if (tb_tensor described; key != 0 && has_known_result(op, key, in, mode, outs[0], described))
      return invoke_described(in, outs, &described, device);
    std::vector<TensorSpec> specs = op.infer(ocltensor::Args(op.schema, in.values()));
    TORCH_INTERNAL_ASSERT(specs.size() == outs.size() && outs.size() <= kMostOutputs,
                          handle_.name());
    if (!given) ocltensor::lay_out(op, ocltensor::Args(op.schema, in.values()), specs);
    if (key != 0 && op.layout == ocltensor::LayoutRule::Contiguous && specs[0].strides.empty())
      remember_result(op, key, scalar_type_of(specs[0].dtype));
    Call call(*this, in, outs, given, device);
    ocltensor::run_with_outputs(op, mode, in.values(), specs, call);
  } catch (const ocltensor::Error& error) {
    if (error.status() == TB_UNSUPPORTED) throw Declined(error.what());
    raise(error, handle_.name());
  }
}

void PluginOperator::run_functional(Arguments& in, std::span<at::Tensor> outs) {
  run(in, outs, OutputMode::Allocate);
}
void PluginOperator::run_out(Arguments& in, std::span<at::Tensor> outs) {
  run(in, outs, OutputMode::Resize);
}
void PluginOperator::run_in_place(Arguments& in, std::span<at::Tensor> outs) {
  run(in, outs, OutputMode::Keep);
}

namespace {

// A tensor of the same memory without the marks of a lazily conjugated or negated view.
at::Tensor unwrapped(const at::Tensor& tensor) {
  at::Tensor plain = tensor;
  if (plain.is_conj()) plain = at::_conj(plain);
  if (plain.is_neg()) plain = at::_neg_view(plain);
  return plain;
}

void change_in_place(PluginOperator& op, const at::Tensor& target) {
  Arguments in;
  in.add(target);
  at::Tensor outs[] = {target};
  op.invoke(in, outs, in.settle("copy_", target.device().index(), false));
}

// Changes the signs of real numbers, of float64 by its bits where the device only stores it.
void negate_in_place(const at::Tensor& target) {
  static PluginOperator& negate = *new PluginOperator("neg.out");
  if (target.scalar_type() != at::kDouble || !lacks_float64(target))
    return change_in_place(negate, target);
  at::Tensor bits = target.view(at::kLong);
  bits.bitwise_xor_(std::numeric_limits<int64_t>::min());
}

}  // namespace

namespace {

// PyTorch makes views of more axes than tensors may have (repeat: of twice as many). A target has
// fewer axes that are longer than 1 than an address has bits.
void copy_without_ones(const at::Tensor& target, const at::Tensor& source) {
  const at::Tensor spread = source.expand(target.sizes());
  c10::SmallVector<int64_t, 64> sizes, strides[2];
  for (int64_t d = 0; d < target.dim(); ++d) {
    if (target.size(d) == 1) continue;
    sizes.push_back(target.size(d));
    strides[0].push_back(target.stride(d));
    strides[1].push_back(spread.stride(d));
  }
  copy_on_device(at::as_strided(target, sizes, strides[0]),
                 at::as_strided(spread, sizes, strides[1]));
}

}  // namespace

void copy_on_device(const at::Tensor& target, const at::Tensor& source) {
  if (target.numel() == 0) return;
  if (std::max(target.dim(), source.dim()) > TB_MAX_RANK) [[unlikely]]
    return copy_without_ones(target, source);
  const bool conjugates = target.is_conj() != source.is_conj();
  const bool negates = target.is_neg() != source.is_neg();
  if (target.is_conj() || target.is_neg() || source.is_conj() || source.is_neg()) {
    const PartOfCopy part;
    static PluginOperator& conjugate = *new PluginOperator("conj_physical.out");
    const at::Tensor plain = unwrapped(target);
    copy_on_device(plain, unwrapped(source));
    const bool in_parts = plain.scalar_type() == at::kComplexDouble && lacks_float64(plain);
    if (conjugates && target.is_complex()) {
      if (in_parts)
        negate_in_place(at::view_as_real(plain).select(-1, 1));
      else
        change_in_place(conjugate, plain);
    }
    if (negates) negate_in_place(in_parts ? at::view_as_real(plain) : plain);
    return;
  }
  static PluginOperator& copy = *new PluginOperator("copy.out");
  Arguments in;
  in.add(target);
  in.add(source);
  in.add(false);
  at::Tensor outs[] = {target};
  try {
    copy.invoke(in, outs, in.settle("copy_", target.device().index(), false));
  } catch (const Declined& declined) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "The operator 'aten::copy_' is not implemented for the ocl device from dtype ",
        source.scalar_type(), " to ", target.scalar_type(), ": ", declined.what());
  }
}

}  // namespace torch_ocl
