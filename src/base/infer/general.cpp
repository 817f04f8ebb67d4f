// Inference for the eigenvalues of general matrices, and for LDL^T factorisations: float32,
// float64 and the complex types of such parts. Matrices are column-major, as LAPACK has them.
#include "common.h"

namespace ocltensor::infer {
namespace {

TensorView matrix(const Args& args, Arg a) {
  const TensorView t = args.tensor(a);
  check(t.ndim() >= 2, "{}: '{}' must have at least 2 dimensions, got shape {}",
        args.schema().full_name(), name(a), to_string(t.sizes()));
  const DType part = real_type(t.dtype());
  if (part != DType::Float32 && part != DType::Float64)
    unsupported(TB_REASON_DTYPE, "{} takes float32, float64, complex64 and complex128, got {}",
                args.schema().full_name(), name(t.dtype()));
  return t;
}
TensorView square(const Args& args, Arg a) {
  const TensorView t = matrix(args, a);
  check(t.size(-1) == t.size(-2), "{}: '{}' must hold square matrices, got shape {}",
        args.schema().full_name(), name(a), to_string(t.sizes()));
  return t;
}

// The dimensions before the last `dropped` ones.
Dims leading(TensorView t, int64_t dropped) {
  return Dims(t.sizes().first(static_cast<size_t>(t.ndim() - dropped)));
}
TensorSpec column_major(DType type, const Dims& sizes) {
  const size_t row = sizes.size() - 2;
  Dims turned = sizes;
  std::swap(turned[row], turned[row + 1]);
  Dims strides = contiguous_strides(turned);
  std::swap(strides[row], strides[row + 1]);
  return {type, sizes, strides};
}

}  // namespace

Specs linalg_eigvals(const Args& args) {
  const TensorView a = square(args, Arg::self);
  return {spec(complex_type(a.dtype()), leading(a, 1))};
}

Specs linalg_eig(const Args& args) {
  const TensorView a = square(args, Arg::self);
  return {spec(complex_type(a.dtype()), leading(a, 1)),
          column_major(complex_type(a.dtype()), Dims(a.sizes()))};
}

Specs linalg_ldl_factor_ex(const Args& args) {
  const TensorView a = square(args, Arg::self);
  return {column_major(a.dtype(), Dims(a.sizes())), spec(DType::Int32, leading(a, 1)),
          spec(DType::Int32, leading(a, 2))};
}

Specs linalg_ldl_solve(const Args& args) {
  const TensorView ld = square(args, Arg::LD);
  const TensorView b = matrix(args, Arg::B);
  const TensorView pivots = args.tensor(Arg::pivots);
  check_same_type(args, ld, b);
  check(is_integral(pivots.dtype(), false), "{}: pivots must be integers, got {}",
        args.schema().full_name(), name(pivots.dtype()));
  check(Dims(pivots.sizes()) == leading(ld, 1),
        "{}: pivots of shape {} do not belong to a factorisation of shape {}",
        args.schema().full_name(), to_string(pivots.sizes()), to_string(ld.sizes()));
  check(b.size(-2) == ld.size(-1), "{}: shapes {} and {} do not fit", args.schema().full_name(),
        to_string(ld.sizes()), to_string(b.sizes()));
  Dims sizes = broadcast(leading(ld, 2), leading(b, 2));
  sizes.push_back(b.size(-2));
  sizes.push_back(b.size(-1));
  return {column_major(b.dtype(), sizes)};
}

}  // namespace ocltensor::infer
