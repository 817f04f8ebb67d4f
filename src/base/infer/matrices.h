// What inference for dense linear algebra shares: checks of matrices of the types that it takes
// (float32, float64 and the complex types of such parts), batches, and LAPACK's layout.
#pragma once

#include "common.h"

namespace ocltensor::infer {

inline TensorView matrix(const Args& args, Arg a) {
  const TensorView t = args.tensor(a);
  check(t.ndim() >= 2, "{}: '{}' must have at least 2 dimensions, got shape {}",
        args.schema().full_name(), name(a), to_string(t.sizes()));
  const DType part = real_type(t.dtype());
  if (part != DType::Float32 && part != DType::Float64)
    unsupported(TB_REASON_DTYPE, "{} takes float32, float64, complex64 and complex128, got {}",
                args.schema().full_name(), name(t.dtype()));
  return t;
}
inline TensorView square(const Args& args, Arg a) {
  const TensorView t = matrix(args, a);
  check(t.size(-1) == t.size(-2), "{}: '{}' must hold square matrices, got shape {}",
        args.schema().full_name(), name(a), to_string(t.sizes()));
  return t;
}

// The dimensions before the last `dropped` ones.
inline Dims batch_of(TensorView t, size_t dropped = 2) {
  return Dims(t.sizes().first(static_cast<size_t>(t.ndim()) - dropped));
}
inline Dims joined(Dims batch, std::initializer_list<int64_t> last) {
  for (const int64_t s : last) batch.push_back(s);
  return batch;
}
inline TensorSpec column_major(DType type, const Dims& sizes) {
  Dims transposed = sizes;
  std::swap(transposed[transposed.size() - 1], transposed[transposed.size() - 2]);
  Dims strides = contiguous_strides(transposed);
  std::swap(strides[transposed.size() - 1], strides[transposed.size() - 2]);
  return {type, sizes, strides};
}

}  // namespace ocltensor::infer
