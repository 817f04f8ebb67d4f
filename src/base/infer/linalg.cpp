// Inference for dense linear algebra. Results are column-major, as LAPACK and so ATen have them.
#include "matrices.h"

namespace ocltensor::infer {
namespace {

TensorSpec info_spec(TensorView a) { return spec(DType::Int32, batch_of(a)); }
// Outputs: a matrix of the input's shape for each of its matrices, and the info codes.
Specs of_its_shape(TensorView a) {
  return {column_major(a.dtype(), Dims(a.sizes())), info_spec(a)};
}

// The result of a solve: B with broadcast batch dimensions. Throws if A and B cannot be multiplied.
TensorSpec solution(const Args& args, TensorView a, TensorView b, bool left) {
  check_same_type(args, a, b);
  check(b.size(left ? -2 : -1) == a.size(-1), "{}: shapes {} and {} do not fit",
        args.schema().full_name(), to_string(a.sizes()), to_string(b.sizes()));
  return column_major(b.dtype(),
                      joined(broadcast(batch_of(a), batch_of(b)), {b.size(-2), b.size(-1)}));
}

void check_pivots(const Args& args, TensorView lu, TensorView pivots) {
  check(pivots.dtype() == DType::Int32, "{}: pivots must be int32, got {}",
        args.schema().full_name(), name(pivots.dtype()));
  check(Dims(pivots.sizes()) == joined(batch_of(lu), {std::min(lu.size(-2), lu.size(-1))}),
        "{}: pivots of shape {} do not belong to a factorisation of shape {}",
        args.schema().full_name(), to_string(pivots.sizes()), to_string(lu.sizes()));
}

}  // namespace

Specs linalg_cholesky_ex(const Args& args) { return of_its_shape(square(args, Arg::self)); }
Specs linalg_inv_ex(const Args& args) { return of_its_shape(square(args, Arg::A)); }

Specs linalg_solve_triangular(const Args& args) {
  const auto a = square(args, Arg::self);
  return {solution(args, a, matrix(args, Arg::B), args.boolean(Arg::left))};
}

Specs linalg_lu_factor_ex(const Args& args) {
  const auto a = matrix(args, Arg::A);
  const int64_t k = std::min(a.size(-2), a.size(-1));
  return {column_major(a.dtype(), Dims(a.sizes())), spec(DType::Int32, joined(batch_of(a), {k})),
          info_spec(a)};
}

Specs linalg_lu_solve(const Args& args) {
  const auto lu = square(args, Arg::LU);
  check_pivots(args, lu, args.tensor(Arg::pivots));
  return {solution(args, lu, matrix(args, Arg::B), args.boolean(Arg::left))};
}

Specs linalg_solve_ex(const Args& args) {
  const auto a = square(args, Arg::A);
  const Dims batch = batch_of(a);
  const bool left = args.boolean(Arg::left);
  TensorSpec x = solution(args, a, matrix(args, Arg::B), left);
  if (!left) x.strides = contiguous_strides(x.sizes);
  return {x, column_major(a.dtype(), Dims(a.sizes())),
          spec(DType::Int32, joined(batch, {a.size(-1)})), spec(DType::Int32, batch)};
}

Specs lu_unpack(const Args& args) {
  const auto lu = matrix(args, Arg::LU_data);
  check_pivots(args, lu, args.tensor(Arg::LU_pivots));
  const int64_t m = lu.size(-2);
  const int64_t n = lu.size(-1);
  const int64_t k = std::min(m, n);
  const Dims batch = batch_of(lu);
  const auto part = [&](bool wanted, int64_t rows, int64_t columns) {
    return wanted ? spec(lu.dtype(), joined(batch, {rows, columns})) : no_output(lu.dtype());
  };
  return {part(args.boolean(Arg::unpack_pivots), m, m), part(args.boolean(Arg::unpack_data), m, k),
          part(args.boolean(Arg::unpack_data), k, n)};
}

Specs geqrf(const Args& args) {
  const auto a = matrix(args, Arg::self);
  const int64_t k = std::min(a.size(-2), a.size(-1));
  return {column_major(a.dtype(), Dims(a.sizes())), spec(a.dtype(), joined(batch_of(a), {k}))};
}

Specs linalg_householder_product(const Args& args) {
  const auto a = matrix(args, Arg::input);
  const auto tau = args.tensor(Arg::tau);
  check_same_type(args, a, tau);
  check(a.size(-2) >= a.size(-1) && tau.ndim() == a.ndim() - 1 && batch_of(tau, 1) == batch_of(a) &&
            tau.size(-1) <= a.size(-1),
        "{}: reflectors of shape {} and factors of shape {} do not fit", args.schema().full_name(),
        to_string(a.sizes()), to_string(tau.sizes()));
  return {column_major(a.dtype(), Dims(a.sizes()))};
}

Specs linalg_qr(const Args& args) {
  const auto a = matrix(args, Arg::A);
  const auto mode = args.string(Arg::mode);
  check(mode == "reduced" || mode == "complete" || mode == "r",
        "{}: mode must be reduced, complete or r, got {}", args.schema().full_name(), mode);
  const int64_t m = a.size(-2);
  const int64_t n = a.size(-1);
  const int64_t k = mode == "complete" ? m : std::min(m, n);
  const Dims batch = batch_of(a);
  return {mode == "r" ? no_output(a.dtype()) : column_major(a.dtype(), joined(batch, {m, k})),
          column_major(a.dtype(), joined(batch, {k, n}))};
}

Specs linalg_svd(const Args& args) {
  const auto a = matrix(args, Arg::A);
  check(args.is_none(Arg::driver), "{}: there is no driver '{}', leave it out",
        args.schema().full_name(), args.is_none(Arg::driver) ? "" : args.string(Arg::driver));
  const bool full = args.boolean(Arg::full_matrices);
  const int64_t m = a.size(-2);
  const int64_t n = a.size(-1);
  const int64_t k = std::min(m, n);
  const Dims batch = batch_of(a);
  const TensorSpec s = spec(real_type(a.dtype()), joined(batch, {k}));
  if (!args.boolean(Arg::compute_uv)) return {no_output(a.dtype()), s, no_output(a.dtype())};
  return {column_major(a.dtype(), joined(batch, {m, full ? m : k})), s,
          column_major(a.dtype(), joined(batch, {full ? n : k, n}))};
}

Specs linalg_eigh(const Args& args) {
  const auto a = square(args, Arg::A);
  const auto uplo = args.string(Arg::UPLO);
  check(uplo == "L" || uplo == "l" || uplo == "U" || uplo == "u", "{}: UPLO must be L or U, got {}",
        args.schema().full_name(), uplo);
  return {spec(real_type(a.dtype()), joined(batch_of(a), {a.size(-1)})),
          args.boolean(Arg::compute_v) ? column_major(a.dtype(), Dims(a.sizes()))
                                       : no_output(a.dtype())};
}

}  // namespace ocltensor::infer
