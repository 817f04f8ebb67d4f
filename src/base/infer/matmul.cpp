// Inference for matrix and vector products.
#include "common.h"

namespace ocltensor::infer {
namespace {

void check_rank(const Args& args, TensorView t, int64_t rank) {
  check(t.ndim() == rank, "{} needs a tensor of {} dimensions, got shape {}",
        args.schema().full_name(), rank, to_string(t.sizes()));
}

// Checks the operands' ranks and sizes; returns the product's shape.
Dims product(const Args& args, TensorView a, int64_t rank_a, TensorView b, int64_t rank_b) {
  check_rank(args, a, rank_a);
  check_rank(args, b, rank_b);
  check_same_type(args, a, b);
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

Specs plain(const Args& args, int64_t rank, Factor other) {
  const auto self = args.tensor(Arg::self);
  return {spec(self.dtype(), product(args, self, rank, args.tensor(other.name), other.rank))};
}

}  // namespace

Specs addmm(const Args& args) { return added(args, {Arg::mat1, 2}, {Arg::mat2, 2}); }
Specs addmv(const Args& args) { return added(args, {Arg::mat, 2}, {Arg::vec, 1}); }
Specs baddbmm(const Args& args) { return added(args, {Arg::batch1, 3}, {Arg::batch2, 3}); }
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
Specs mm(const Args& args) { return plain(args, 2, {Arg::mat2, 2}); }
Specs mv(const Args& args) { return plain(args, 2, {Arg::vec, 1}); }

}  // namespace ocltensor::infer
