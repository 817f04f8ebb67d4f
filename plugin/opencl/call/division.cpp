// Checks outputs, and divides work into work-items for the device's style.
#include "division.h"

#include <algorithm>

#include "base/promotion.h"

namespace ocltensor::opencl {

namespace {

void check_shape(const OpCall& call, size_t i, TensorView out, std::span<const int64_t> expected) {
  check(same(expected, out.sizes()), "{}: output {} has shape {}, expected {}", call.name(), i,
        to_string(out.sizes()), to_string(expected));
}
void check_type(const OpCall& call, size_t i, TensorView out, DType expected) {
  check(expected == out.dtype(), "{}: output {} has type {}, expected {}", call.name(), i,
        name(out.dtype()), name(expected));
}
void check_count(const OpCall& call, size_t expected) {
  check(expected == call.out_count(), "{} has {} outputs, got {}", call.name(), expected,
        call.out_count());
}

}  // namespace

std::vector<TensorSpec> check_outputs(const OpCall& call, OutputTypes types) {
  auto specs = call.op().infer(call.args());
  check_count(call, specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    const TensorView out = call.out(i);
    if ((call.op().flags & kDataDependentShape) == 0) check_shape(call, i, out, specs[i].sizes);
    if (types == OutputTypes::Inferred) check_type(call, i, out, specs[i].dtype);
    if (types == OutputTypes::Castable)
      check(can_cast(specs[i].dtype, out.dtype()), "{}: a result of type {} cannot be cast to {}",
            call.name(), name(specs[i].dtype), name(out.dtype()));
  }
  return specs;
}

void check_outputs_like(const OpCall& call, TensorViews list) {
  check_count(call, list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const TensorView out = call.out(i), expected = list[i];
    check_shape(call, i, out, expected.sizes());
    check_type(call, i, out, expected.dtype());
  }
}

Division divide(const Capabilities& caps, int64_t count, int64_t smallest) {
  Division d;
  if (caps.style == KernelStyle::Cpu) {
    constexpr int64_t kItems = 64;
    d.per_item = std::max(smallest, (count + kItems - 1) / kItems);
    d.global[0] = (count + d.per_item - 1) / d.per_item;
  } else {
    d.local[0] = std::min<int64_t>(256, caps.max_work_group_size);
    d.global[0] = (count + d.local[0] - 1) / d.local[0] * d.local[0];
  }
  return d;
}

}  // namespace ocltensor::opencl
