// The rules of call_plan.h: ATen's, where ATen has one.
#include "call_plan.h"

#include "iteration.h"
#include "promotion.h"

namespace ocltensor {
namespace {

std::span<const int64_t> sizes_of(const tb_tensor& t) { return {t.sizes, t.ndim}; }
std::span<const int64_t> strides_of(const tb_tensor& t) { return {t.strides, t.ndim}; }

bool same_places(const tb_tensor& a, const tb_tensor& b) {
  if (a.address != b.address || !same(sizes_of(a), sizes_of(b))) return false;
  for (uint32_t i = 0; i < a.ndim; ++i)
    if (a.sizes[i] > 1 && a.strides[i] != b.strides[i]) return false;
  return true;
}

struct Range {
  uint64_t begin, end;  // addresses
};
Range range_of(const tb_tensor& t, int64_t itemsize) {
  const Extent e = extent(sizes_of(t), strides_of(t));
  return {t.address + static_cast<uint64_t>(e.low * itemsize),
          t.address + static_cast<uint64_t>(e.high * itemsize)};
}

bool is_empty(const tb_tensor& t) {
  for (uint32_t i = 0; i < t.ndim; ++i)
    if (t.sizes[i] == 0) return true;
  return t.address == 0;
}

[[noreturn]] void refuse_overlap(const Operator& op, size_t argument) {
  fail(TB_E_INVALID,
       "{}: unsupported operation: some elements of argument '{}' and the written-to tensor refer "
       "to a single memory location; clone() one of them first",
       op.name, op.schema.inputs[argument].name);
}

}  // namespace

void refuse_devices(std::string_view op, std::string_view one, std::string_view another) {
  fail(TB_E_INVALID,
       "{}: Expected all tensors to be on the same device, but found at least two devices, {} and "
       "{}",
       op, one, another);
}

void refuse_output_device(std::string_view op, std::string_view output,
                          std::string_view arguments) {
  fail(TB_E_INVALID,
       "{}: Expected all tensors to be on the same device, but the output is on {} and the "
       "arguments are on {}",
       op, output, arguments);
}

Overlap overlap(const tb_tensor& a, const tb_tensor& b) {
  // Fast path: most tensors of a call have separate storages.
  if (a.base != 0 && b.base != 0 &&
      (a.base + a.base_bytes <= b.base || b.base + b.base_bytes <= a.base)) [[likely]]
    return Overlap::None;
  if (is_empty(a) || is_empty(b)) return Overlap::None;
  const DType ta = from_abi(a.dtype), tb = from_abi(b.dtype);
  const Range ra = range_of(a, size_of(ta)), rb = range_of(b, size_of(tb));
  if (ra.end <= rb.begin || rb.end <= ra.begin) return Overlap::None;
  if (same_places(a, b)) {
    if (ta == tb) return Overlap::Same;
    if (size_of(ta) == size_of(tb)) return Overlap::Maybe;
  }
  return is_dense({sizes_of(a), strides_of(a)}) && is_dense({sizes_of(b), strides_of(b)})
             ? Overlap::Partial
             : Overlap::Maybe;
}

void check_output_type(const Operator& op, const tb_tensor& out, TensorSpec& spec) {
  const DType type = from_abi(out.dtype);
  if (type == spec.dtype) return;
  if (op.is(kAnyType)) {
    spec.dtype = type;
    return;
  }
  check(!op.is(kExactType), "{}: Expected out tensor to have dtype {}, but got {} instead", op.name,
        name(spec.dtype), name(type));
  check(can_cast(spec.dtype, type),
        "{}: result type {} can't be cast to the desired output type {}", op.name, name(spec.dtype),
        name(type));
}

void check_kept_shape(const Operator& op, const tb_tensor& out, const TensorSpec& spec) {
  check(same(sizes_of(out), spec.sizes),
        "{}: output with shape {} doesn't match the broadcast shape {}", op.name,
        to_string(sizes_of(out)), to_string(spec.sizes));
}

bool may_write(const Operator& op, const tb_tensor& out, const TensorSpec& spec,
               std::span<const tb_value> args, OutputMode mode) {
  check(!has_internal_overlap(sizes_of(out), strides_of(out)),
        "{}: unsupported operation: more than one element of the written-to tensor, of shape {} "
        "and strides {}, refers to a single memory location; clone() it first",
        op.name, to_string(sizes_of(out)), to_string(strides_of(out)));
  const bool pointwise = op.is(kPointwise), never = op.is(kNoOverlap);
  const bool over_self = mode == OutputMode::Keep || op.is(kStartsFromSelf);
  bool direct = pointwise || from_abi(out.dtype) == spec.dtype;  // pointwise operators convert
  for_each_tensor(args, [&](size_t i, const tb_tensor& input) {
    switch (overlap(out, input)) {
      case Overlap::None: break;
      case Overlap::Same:
        if (never) refuse_overlap(op, i);
        direct = direct && (pointwise || (over_self && i == 0));
        break;
      case Overlap::Partial:
        if (never || pointwise) refuse_overlap(op, i);
        direct = false;
        break;
      case Overlap::Maybe: direct = false; break;
    }
  });
  return direct;
}

void check_disjoint(const Operator& op, std::span<const tb_tensor* const> outs) {
  for (size_t i = 0; i < outs.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (outs[i] != nullptr && outs[k] != nullptr)
        check(overlap(*outs[i], *outs[k]) == Overlap::None,
              "{}: unsupported operation: outputs {} and {} share memory", op.name, k, i);
}

const char* fallback_obstacle(const Operator& op) {
  return op.is(kNeverFallsBack) ? "it changes its arguments" : nullptr;
}

}  // namespace ocltensor
