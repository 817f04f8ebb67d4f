// Inference for the eigenvalues of general matrices, and for LDL^T factorisations.
#include "matrices.h"

namespace ocltensor::infer {

Specs linalg_eigvals(const Args& args) {
  const TensorView a = square(args, Arg::self);
  return {spec(complex_type(a.dtype()), batch_of(a, 1))};
}

Specs linalg_eig(const Args& args) {
  const TensorView a = square(args, Arg::self);
  return {spec(complex_type(a.dtype()), batch_of(a, 1)),
          column_major(complex_type(a.dtype()), Dims(a.sizes()))};
}

Specs linalg_ldl_factor_ex(const Args& args) {
  const TensorView a = square(args, Arg::self);
  return {column_major(a.dtype(), Dims(a.sizes())), spec(DType::Int32, batch_of(a, 1)),
          spec(DType::Int32, batch_of(a))};
}

Specs linalg_ldl_solve(const Args& args) {
  const TensorView ld = square(args, Arg::LD);
  const TensorView b = matrix(args, Arg::B);
  const TensorView pivots = args.tensor(Arg::pivots);
  check_same_type(args, ld, b);
  check(is_integral(pivots.dtype(), false), "{}: pivots must be integers, got {}",
        args.schema().full_name(), name(pivots.dtype()));
  check(Dims(pivots.sizes()) == batch_of(ld, 1),
        "{}: pivots of shape {} do not belong to a factorisation of shape {}",
        args.schema().full_name(), to_string(pivots.sizes()), to_string(ld.sizes()));
  check(b.size(-2) == ld.size(-1), "{}: shapes {} and {} do not fit", args.schema().full_name(),
        to_string(ld.sizes()), to_string(b.sizes()));
  return {column_major(b.dtype(),
                       joined(broadcast(batch_of(ld), batch_of(b)), {b.size(-2), b.size(-1)}))};
}

}  // namespace ocltensor::infer
