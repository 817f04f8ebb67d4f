// Checked outputs, and work cut into items for the device's style.
#include "division.h"

#include <algorithm>

namespace ocltensor::opencl {

std::vector<TensorSpec> check_outputs(const OpCall& call, bool any_type) {
  auto specs = call.op().infer(call.args());
  check(specs.size() == call.out_count(), "{} has {} outputs, got {}", call.name(), specs.size(),
        call.out_count());
  for (size_t i = 0; i < specs.size(); ++i) {
    const TensorView out = call.out(i);
    if ((call.op().flags & kDataDependentShape) == 0)
      check(std::ranges::equal(specs[i].sizes, out.sizes()),
            "{}: output {} has shape {}, expected {}", call.name(), i, to_string(out.sizes()),
            to_string(specs[i].sizes));
    check(any_type || specs[i].dtype == out.dtype(), "{}: output {} has type {}, expected {}",
          call.name(), i, name(out.dtype()), name(specs[i].dtype));
  }
  return specs;
}

Division divide(const Capabilities& caps, int64_t count, int64_t smallest) {
  Division d;
  if (caps.style == KernelStyle::Rows) {
    constexpr int64_t kItems = 64;
    d.per_item = std::max(smallest, (count + kItems - 1) / kItems);
    d.global[0] = static_cast<size_t>((count + d.per_item - 1) / d.per_item);
  } else {
    d.local[0] = std::min<size_t>(256, caps.max_work_group_size);
    d.global[0] = (static_cast<size_t>(count) + d.local[0] - 1) / d.local[0] * d.local[0];
  }
  return d;
}

}  // namespace ocltensor::opencl
