// hash_tensor: the exclusive or of elements, which are widened to 64 bits first.
#include "base/infer/common.h"
#include "call/division.h"
#include "complex.h"
#include "reduction.h"

namespace ocltensor::opencl::reduce {
namespace {

constexpr Reduction kExclusiveOr{1, {{"a", "x ^ y", "0", "x"}}};

// The bits of numbers of 64 bits.
LocalTensor bits_of(TensorView numbers) {
  return LocalTensor(numbers.address(), DType::Int64, Dims(numbers.sizes()),
                     Dims(numbers.strides()));
}

void hash_tensor(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  if (is_float8(self.dtype()))
    unsupported(TB_REASON_DTYPE, "{} is not implemented for {}", call.name(), name(self.dtype()));
  call.accept();
  const Converted wide(call, self, is_floating(self.dtype()) ? DType::Float64 : DType::Int64);
  const LocalTensor bits = bits_of(wide.view());
  const LocalTensor result = bits_of(call.out(0));
  const TensorView in = bits.view();
  const TensorView out = result.view();
  launch_reduce(call, {&kExclusiveOr,
                       DType::Int64,
                       Dims(self.sizes()),
                       infer::dim_mask(call.args().ints(Arg::dim), self.ndim()),
                       {&in},
                       {&out}});
}

constexpr OpEntry kOperators[] = {{"hash_tensor.out", hash_tensor, false, true, true}};

}  // namespace

const std::span<const OpEntry> kHashOperators = kOperators;

}  // namespace ocltensor::opencl::reduce
