// Copies operands of attention whose rows cannot be read in vectors.
#include "vector_operand.h"

#include "call/divide_up.h"

namespace ocltensor::opencl::attention {
namespace {

bool is_readable(TensorView t, int64_t vector) {
  const auto leads_to_vectors = [&](int64_t d) {
    return t.size(d) <= 1 || t.stride(d) % vector == 0;
  };
  return t.address() % static_cast<uint64_t>(vector * size_of(t.dtype())) == 0 &&
         (t.size(3) <= 1 || t.stride(3) == 1) && leads_to_vectors(0) && leads_to_vectors(1) &&
         leads_to_vectors(2);
}

}  // namespace

VectorOperand::VectorOperand(const OpCall& call, TensorView tensor, int64_t vector)
    : tensor_(tensor), strides_{tensor.stride(0), tensor.stride(1), tensor.stride(2)} {
  if (is_readable(tensor, vector)) return;
  const Dims sizes(tensor.sizes());
  const int64_t row = divide_up(sizes[3], vector) * vector;
  strides_ = {sizes[1] * sizes[2] * row, sizes[2] * row, row};
  copy_.emplace(
      call.scratch(static_cast<uint64_t>(sizes[0] * strides_.batch * size_of(tensor.dtype()))));
  copy_tensor(call,
              LocalTensor(copy_->address(), tensor.dtype(), sizes,
                          {strides_.batch, strides_.head, strides_.row, 1}),
              tensor);
}
VectorOperand::operator MemoryRange() const {
  if (copy_) return *copy_;
  return tensor_;
}

FlashTensor strides_of(const OutputPlace& out) {
  return out.wanted() ? FlashTensor{out.strides[0], out.strides[1], out.strides[2]} : FlashTensor{};
}

FlashParams forward_params(const FusedProblem& p, const VectorOperand& query,
                           const VectorOperand& key, const VectorOperand& value) {
  FlashParams f = flash_params(p);
  f.query = query.strides();
  f.key = key.strides();
  f.value = value.strides();
  f.out = strides_of(p.outs[0]);
  f.rows = p.outs[1].wanted();
  return f;
}

}  // namespace ocltensor::opencl::attention
