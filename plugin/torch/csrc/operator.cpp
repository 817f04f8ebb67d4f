// Outputs, overlap, and the call through the ABI.
#include "operator.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>

#include <algorithm>
#include <utility>

#include "allocator.h"
#include "base/promotion.h"
#include "stream.h"

namespace torch_ocl {
namespace {

using ocltensor::TensorSpec;

constexpr size_t kMostOuts = 8;

at::IntArrayRef ref(const ocltensor::Dims& dims) { return {dims.data(), dims.size()}; }

bool is_pointwise(const ocltensor::Operator& op) {
  return op.family == std::string_view("pointwise");
}

[[noreturn]] void raise_own(const ocltensor::Error& error, const char* name) {
  if (dynamic_cast<const ocltensor::RangeError*>(&error) != nullptr)
    C10_THROW_ERROR(IndexError, c10::str("ocl: ", name, ": ", error.what()));
  if (error.status() == TB_UNSUPPORTED) throw Declined(error.what());
  raise(error.status(), name, error.what());
}

std::vector<TensorSpec> infer(const ocltensor::Operator& op, const Arguments& in) {
  try {
    return op.infer(ocltensor::Args(op.schema, in.values()));
  } catch (const ocltensor::Error& error) {
    raise_own(error, op.name.c_str());
  }
}

// Constructors, whose numbers an output of any dtype takes.
bool takes_any_type(const ocltensor::Operator& op) {
  const std::string_view name = op.schema.name;
  return name == "arange" || name == "linspace" || name == "logspace" || name == "eye" ||
         name == "randperm";
}

// Operators that start from `self` and change a part of it: they may write over it.
bool changes_self(const ocltensor::Operator& op) {
  const std::string_view name = op.name;
  return name.starts_with("scatter") || name.starts_with("index_add") ||
         name.starts_with("index_put") || name.starts_with("_index_put");
}

// Operators whose outputs must have exactly the inferred dtype: those that are no TensorIterator in
// ATen and convert nothing.
bool takes_one_type(const ocltensor::Operator& op) {
  const std::string_view family = op.family;
  return family == "matmul" || family == "conv" || family == "pool" || family == "index" ||
         family == "sort" || family == "softmax" || family == "upsample" || family == "sampling" ||
         op.schema.name == "multinomial";
}

// Operators that ATen refuses to let write over their inputs.
bool refuses_overlap(const ocltensor::Operator& op) {
  const std::string_view name = op.schema.name;
  return name == "gather" || name == "index_select" || name == "masked_select" || name == "cat" ||
         name == "kthvalue";
}

// May the operator write into `out` itself, or must it write to a temporary?
bool check_overlap(const at::Tensor& out, const Arguments& in, bool pointwise, bool over_self) {
  at::assert_no_internal_overlap(out);
  bool direct = true;
  bool first = true;
  for (const at::Tensor* input : in.tensors()) {
    const bool may_share = pointwise || (first && over_self);
    first = false;
    if (!input->is_alias_of(out)) continue;
    if (input->is_same(out) || at::get_overlap_status(*input, out) == at::MemOverlapStatus::Full) {
      direct &= may_share && input->dtype() == out.dtype() && input->strides() == out.strides();
      continue;
    }
    if (pointwise) at::assert_no_partial_overlap(out, *input);
    direct &= at::get_overlap_status(*input, out) == at::MemOverlapStatus::No;
  }
  return direct;
}

// Checks a given output against the inferred one; true if its dtype is exactly that.
bool check_type(const ocltensor::Operator& op, const at::Tensor& out, const TensorSpec& spec) {
  const ocltensor::DType have = dtype_of(out.scalar_type());
  if (have == spec.dtype) return true;
  TORCH_CHECK(!takes_one_type(op), op.schema.name, ": Expected out tensor to have dtype ",
              scalar_type_of(spec.dtype), ", but got ", out.scalar_type(), " instead");
  TORCH_CHECK(ocltensor::can_cast(spec.dtype, have), "result type ", scalar_type_of(spec.dtype),
              " can't be cast to the desired output type ", out.scalar_type());
  return false;
}

struct ResizeContext {
  std::span<at::Tensor> targets;
  c10::DeviceIndex device;
};

tb_status resize(void* context, uint32_t index, const int64_t* sizes, uint32_t ndim,
                 tb_tensor* tensor) {
  return ocltensor::guarded(nullptr, [&] {
    auto& c = *static_cast<ResizeContext*>(context);
    ocltensor::check(index < c.targets.size(), "there is no output {}", index);
    at::Tensor& target = c.targets[index];
    target = make_tensor({sizes, ndim}, {}, target.scalar_type(), c.device);
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
    layout_.store(layout_of(handle_.name()), std::memory_order_relaxed);
    schema_.store(found, std::memory_order_release);
  }
  return *found;
}

namespace {

// Operators that are parts of a copy run whatever the user disabled: the fallback copies.
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
  tb_tensor described[kMostOuts];
  const tb_tensor* pointers[kMostOuts];
  for (size_t i = 0; i < outs.size(); ++i) {
    described[i] = describe_output(outs[i]);
    pointers[i] = &described[i];
  }
  ResizeContext context{outs, device};
  tb_call call{};
  call.resize_out = resize;
  call.resize_context = &context;
  handle_.invoke(call, in, std::span(pointers).first(outs.size()), device);
}

void PluginOperator::run(Arguments& in, std::span<at::Tensor> outs, Outputs mode) {
  const ocltensor::Operator& op = schema();
  const bool pointwise = is_pointwise(op);
  const bool given = mode != Outputs::Allocate;
  const c10::DeviceIndex device =
      in.settle(handle_.name(), given ? outs[0].device().index() : current_device(), pointwise);
  std::vector<TensorSpec> specs = infer(op, in);
  TORCH_INTERNAL_ASSERT(specs.size() == outs.size() && outs.size() <= kMostOuts, handle_.name());
  const bool dynamic = (op.flags & ocltensor::kDataDependentShape) != 0;
  if (const Layout layout = given ? nullptr : layout_.load(std::memory_order_relaxed))
    layout(in.tensors(), specs);

  std::array<at::Tensor, kMostOuts> targets;
  for (size_t i = 0; i < outs.size(); ++i) {
    TensorSpec& spec = specs[i];
    if (given && takes_any_type(op)) spec.dtype = dtype_of(outs[i].scalar_type());
    const at::ScalarType type = scalar_type_of(spec.dtype);
    bool direct = false;
    if (given) {
      const at::Tensor& out = outs[i];
      TORCH_CHECK(out.device() == c10::Device(kOcl, device), op.schema.name,
                  ": Expected all tensors to be on the same device, but the output is on ",
                  out.device(), " and the arguments are on ocl:", static_cast<int>(device));
      const bool same_type = check_type(op, out, spec);
      if (refuses_overlap(op)) {
        at::assert_no_internal_overlap(out);
        for (const at::Tensor* input : in.tensors()) at::assert_no_overlap(out, *input);
      }
      if (!dynamic) {
        if (mode == Outputs::Resize)
          resize_given(out, ref(spec.sizes), spec.strides);
        else
          TORCH_CHECK(out.sizes() == ref(spec.sizes), "output with shape ", out.sizes(),
                      " doesn't match the broadcast shape ", ref(spec.sizes));
        direct = check_overlap(out, in, pointwise, mode == Outputs::Keep || changes_self(op)) &&
                 (same_type || pointwise) && !out.is_conj() && !out.is_neg();
      }
      if (direct) targets[i] = out;
    }
    if (direct) continue;
    ocltensor::Dims sizes = spec.sizes;
    if (dynamic && !sizes.empty()) sizes[0] = 0;  // until the plugin knows
    targets[i] =
        make_tensor(ref(sizes), dynamic ? at::IntArrayRef() : ref(spec.strides), type, device);
  }

  invoke(in, std::span(targets).first(outs.size()), device);
  for (size_t i = 0; i < outs.size(); ++i) {
    if (!given) {
      outs[i] = std::move(targets[i]);
    } else if (!outs[i].is_same(targets[i])) {
      if (dynamic) at::native::resize_output(outs[i], targets[i].sizes());
      copy_on_device(outs[i], targets[i]);
    }
  }
}

void PluginOperator::run_functional(Arguments& in, std::span<at::Tensor> outs) {
  run(in, outs, Outputs::Allocate);
}
void PluginOperator::run_out(Arguments& in, std::span<at::Tensor> outs) {
  run(in, outs, Outputs::Resize);
}
void PluginOperator::run_in_place(Arguments& in, std::span<at::Tensor> outs) {
  run(in, outs, Outputs::Keep);
}

namespace {

// The same memory without the marks of a lazily conjugated or negated view.
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

}  // namespace

void copy_on_device(const at::Tensor& target, const at::Tensor& source) {
  if (target.numel() == 0) return;
  const bool conjugates = target.is_conj() != source.is_conj();
  const bool negates = target.is_neg() != source.is_neg();
  if (target.is_conj() || target.is_neg() || source.is_conj() || source.is_neg()) {
    const PartOfCopy part;
    static PluginOperator& conjugate = *new PluginOperator("conj_physical.out");
    static PluginOperator& negate = *new PluginOperator("neg.out");
    const at::Tensor plain = unwrapped(target);
    copy_on_device(plain, unwrapped(source));
    if (conjugates && target.is_complex()) change_in_place(conjugate, plain);
    if (negates) change_in_place(negate, plain);
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
