// Reductions of complex numbers: sums and variances are computed on real and imaginary parts, norms
// on moduli, truth on flags; a product halves the tensor until one element is left.
#include "complex.h"

#include "base/infer/common.h"
#include "ops/copy/copy.h"
#include "ops/elementwise/elementwise.h"

namespace ocltensor::opencl::reduce {
namespace {

constexpr elementwise::Formula kModulus{"modulus", elementwise::FormulaForm::Lanes,
                                        "Z(cabs_(a), 0)"};
constexpr elementwise::Formula kProduct{"product", elementwise::FormulaForm::Lanes, "cmul(a, b)"};

std::vector<Scratch> memory_for(const OpCall& call, TensorView self, DType type) {
  std::vector<Scratch> memory;
  if (self.dtype() != type)
    memory.push_back(call.scratch(static_cast<uint64_t>(self.numel() * size_of(type))));
  return memory;
}

LocalTensor local_for(const std::vector<Scratch>& memory, TensorView self, DType type) {
  if (memory.empty())
    return LocalTensor(self.address(), type, Dims(self.sizes()), Dims(self.strides()));
  return LocalTensor(memory[0].address(), type, Dims(self.sizes()));
}

}  // namespace

Converted::Converted(const OpCall& call, TensorView self, DType type)
    : memory_(memory_for(call, self, type)), local_(local_for(memory_, self, type)) {
  if (memory_.empty() || self.numel() == 0) return;
  if (!is_complex(self.dtype()) || !is_floating(type)) {
    copy_tensor(call, local_, self);
    return;
  }
  const elementwise::ElementwiseInput input{&self, 0, false};
  elementwise::launch_elementwise(
      call, local_, {&kModulus, compute_type(self.dtype()), type, false, {&input, 1}, {}});
}

void multiply_in_place(const OpCall& call, TensorView target, TensorView factor) {
  const elementwise::ElementwiseInput inputs[] = {{&target, 0, false}, {&factor, 0, false}};
  elementwise::launch_elementwise(
      call, target, {&kProduct, compute_type(target.dtype()), target.dtype(), false, inputs, {}});
}

void complex_product(const OpCall& call, TensorView out, TensorView self, DimMask mask) {
  if (out.numel() == 0) return;
  Dims sizes, strides;  // kept dimensions, then reduced ones
  int64_t length = 1;
  for (const bool reduced : {false, true})
    for (size_t d = 0; d < self.sizes().size(); ++d) {
      if (mask[d] != reduced) continue;
      sizes.push_back(self.sizes()[d]);
      strides.push_back(self.strides()[d]);
      if (reduced) length *= self.sizes()[d];
    }
  if (length == 0) return copy::fill_tensor(call, out, 1);
  const int64_t rows = out.numel();
  const DType type = compute_type(self.dtype());
  const Scratch memory = call.scratch(static_cast<uint64_t>(rows * length * size_of(type)));
  copy_tensor(call, LocalTensor(memory.address(), type, sizes),
              copy::view_of(self, sizes, strides, 0));
  const LocalTensor all(memory.address(), type, Dims{rows, length});
  for (int64_t n = length; n > 1; n = (n + 1) / 2) {
    const int64_t keep = (n + 1) / 2;
    multiply_in_place(call, copy::narrow(all, 1, 0, n - keep),
                      copy::narrow(all, 1, keep, n - keep));
  }
  Dims row_strides(contiguous_strides(out.sizes()));
  for (int64_t& s : row_strides) s *= length;
  copy_tensor(call, out, copy::view_of(all, Dims(out.sizes()), row_strides, 0));
}

}  // namespace ocltensor::opencl::reduce
