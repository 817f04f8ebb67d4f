// Inference for matrix and vector products.
#include "common.h"

namespace ocltensor::infer {
namespace {

void check_rank(const Args& args, TensorView t, int64_t rank) {
  check(t.ndim() == rank, "{} needs a tensor of {} dimensions, got shape {}",
        args.schema().full_name(), rank, to_string(t.sizes()));
}

// Checks the operands' ranks and sizes; returns the product's shape.
Dims product_of_any(const Args& args, TensorView a, int64_t rank_a, TensorView b, int64_t rank_b) {
  check_rank(args, a, rank_a);
  check_rank(args, b, rank_b);
  const int64_t inner = rank_b == 1 ? -1 : -2;
  const bool batched = rank_a == 3;
  check(a.size(-1) == b.size(inner) && (!batched || a.size(0) == b.size(0)),
        "{}: shapes {} and {} cannot be multiplied", args.schema().full_name(),
        to_string(a.sizes()), to_string(b.sizes()));
  Dims sizes;
  if (batched) sizes.push_back(a.size(0));
  if (rank_a > 1) sizes.push_back(a.size(-2));
  if (rank_b > 1) sizes.push_back(b.size(-1));
  return sizes;
}
// The same of factors of one type.
Dims product(const Args& args, TensorView a, int64_t rank_a, TensorView b, int64_t rank_b) {
  check_same_type(args, a, b);
  return product_of_any(args, a, rank_a, b, rank_b);
}

// A factor and its rank.
struct Factor {
  Arg name;
  int64_t rank;
};

Specs added(const Args& args, Factor a, Factor b) {
  const auto self = args.tensor(Arg::self);
  const Dims sizes = product(args, args.tensor(a.name), a.rank, args.tensor(b.name), b.rank);
  check_same_type(args, self, args.tensor(a.name));
  (void)broadcast_strides(self.sizes(), self.strides(), sizes);
  return {spec(self.dtype(), sizes)};
}

// The type that the caller wants results in: that of the factors, or float32 for 16-bit ones.
DType wanted_type(const Args& args, DType factors) {
  const DType type = args.optional_dtype(Arg::out_dtype).value_or(factors);
  const bool wider = type == DType::Float32 && size_of(factors) == 2 && is_floating(factors);
  check(type == factors || wider,
        "{}: out_dtype must be the same as the type of the factors, or float32 for float16 and "
        "bfloat16, got {} for {}",
        args.schema().full_name(), name(type), name(factors));
  return type;
}
// What is added has the type of the factors, or that of the result.
Specs added_as(const Args& args, Factor a, Factor b) {
  const auto self = args.tensor(Arg::self), factor = args.tensor(a.name);
  const Dims sizes = product(args, factor, a.rank, args.tensor(b.name), b.rank);
  const DType type = wanted_type(args, factor.dtype());
  check(self.dtype() == factor.dtype() || self.dtype() == type,
        "{}: expected a tensor of {}, got {}", args.schema().full_name(), name(type),
        name(self.dtype()));
  (void)broadcast_strides(self.sizes(), self.strides(), sizes);
  return {spec(type, sizes)};
}
Specs plain_as(const Args& args, int64_t rank) {
  const auto self = args.tensor(Arg::self);
  const Dims sizes = product(args, self, rank, args.tensor(Arg::mat2), rank);
  return {spec(wanted_type(args, self.dtype()), sizes)};
}

Specs plain(const Args& args, int64_t rank, Factor other) {
  const auto self = args.tensor(Arg::self);
  return {spec(self.dtype(), product(args, self, rank, args.tensor(other.name), other.rank))};
}

}  // namespace

Specs addmm(const Args& args) { return added(args, {Arg::mat1, 2}, {Arg::mat2, 2}); }
Specs addmm_dtype(const Args& args) { return added_as(args, {Arg::mat1, 2}, {Arg::mat2, 2}); }
Specs addmv(const Args& args) { return added(args, {Arg::mat, 2}, {Arg::vec, 1}); }
Specs baddbmm(const Args& args) { return added(args, {Arg::batch1, 3}, {Arg::batch2, 3}); }
Specs baddbmm_dtype(const Args& args) { return added_as(args, {Arg::batch1, 3}, {Arg::batch2, 3}); }
Specs bmm_dtype(const Args& args) { return plain_as(args, 3); }
Specs bmm(const Args& args) { return plain(args, 3, {Arg::mat2, 3}); }
Specs dot(const Args& args) { return plain(args, 1, {Arg::tensor, 1}); }
// Of an operand with three dimensions each group has a matrix; two of two dimensions share their
// terms.
Specs grouped_mm(const Args& args) {
  const auto a = args.tensor(Arg::self), b = args.tensor(Arg::mat2), ends = args.tensor(Arg::offs);
  const std::string& name = args.schema().full_name();
  check_same_type(args, a, b);
  check_floating(args, a);
  check(ends.ndim() == 1 && ends.dtype() == DType::Int32,
        "{}: offs must be a vector of int32, got {} of shape {}", name,
        ocltensor::name(ends.dtype()), to_string(ends.sizes()));
  const int64_t groups = ends.size(0);
  const bool a_is_matrix = a.ndim() == 2, b_is_matrix = b.ndim() == 2;
  check((a_is_matrix || a.ndim() == 3) && (b_is_matrix || b.ndim() == 3) &&
            (a_is_matrix || b_is_matrix),
        "{}: expected two matrices, or one and a matrix for each group, got shapes {} and {}", name,
        to_string(a.sizes()), to_string(b.sizes()));
  check(a.size(-1) == b.size(-2) && (a_is_matrix || a.size(0) == groups) &&
            (b_is_matrix || b.size(0) == groups),
        "{}: shapes {} and {} cannot be multiplied in {} groups", name, to_string(a.sizes()),
        to_string(b.sizes()), groups);
  Dims sizes{a.size(-2), b.size(-1)};
  if (a_is_matrix && b_is_matrix) sizes.insert(0, groups);
  return {spec(a.dtype(), sizes)};
}
Specs int_mm(const Args& args) {
  const auto self = args.tensor(Arg::self);
  if (self.dtype() != DType::Int8)
    unsupported(TB_REASON_DTYPE, "{} is not implemented for {}", args.schema().full_name(),
                name(self.dtype()));
  return {spec(DType::Int32, product(args, self, 2, args.tensor(Arg::mat2), 2))};
}
Specs mm_dtype(const Args& args) { return plain_as(args, 2); }
// The second factor may be of int8; results are scaled by what broadcasts to them.
Specs scaled_mm(const Args& args) {
  const auto self = args.tensor(Arg::self), mat2 = args.tensor(Arg::mat2);
  const auto scales = args.tensor(Arg::scales);
  const Dims sizes = product_of_any(args, self, 2, mat2, 2);
  check_floating(args, self);
  check_floating(args, scales);
  check(mat2.dtype() == self.dtype() || mat2.dtype() == DType::Int8,
        "{}: mat2 must be of {} or int8, got {}", args.schema().full_name(), name(self.dtype()),
        name(mat2.dtype()));
  (void)broadcast_strides(scales.sizes(), scales.strides(), sizes);
  return {spec(self.dtype(), sizes)};
}
Specs mm(const Args& args) { return plain(args, 2, {Arg::mat2, 2}); }
Specs mv(const Args& args) { return plain(args, 2, {Arg::vec, 1}); }

}  // namespace ocltensor::infer
