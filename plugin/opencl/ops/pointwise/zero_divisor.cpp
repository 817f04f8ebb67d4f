// Launches the kernel that looks for zeros among the integers that a pointwise operator divides by.
#include "zero_divisor.h"

#include "call/division.h"
#include "kernels/pointwise.h"

namespace ocltensor::opencl::pointwise {

void report_zero_divisor(const OpCall& call, TensorView divisor) {
  if (!call.policy().check_values || divisor.numel() == 0) return;
  const Contiguous dense(call, divisor);
  const Division division = divide(call.caps(), divisor.numel(), 1024);
  Defines d;
  d.type(define::B, divisor.dtype());
  call.launch(kernels::pointwise::zero_divisor::zero_divisor, d,
              {.divisor = dense.view(),
               .faults = call.fault(FaultKind::ZeroDivisor),
               .count = divisor.numel(),
               .per_item = division.per_item})
      .run(division.global, division.local);
}

}  // namespace ocltensor::opencl::pointwise
