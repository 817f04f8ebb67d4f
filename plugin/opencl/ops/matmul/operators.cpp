// mm, bmm, mv, dot, addmm, baddbmm, addmv, _int_mm: each becomes a Problem.
#include "base/infer/common.h"
#include "call/division.h"
#include "matmul.h"

namespace ocltensor::opencl::matmul {
namespace {

// Which dimension of an operand is the batch, the row and the column; -1: it has none.
struct Parts {
  int batch, row, col;
};
struct Form {
  Parts a, b, c;
};
constexpr Form kMatrix{{-1, 0, 1}, {-1, 0, 1}, {-1, 0, 1}};
constexpr Form kBatch{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}};
// mat (n x k) times vec is computed as the row vec times the transpose of mat, which makes the
// result one long row.
constexpr Form kVector{{-1, -1, 0}, {-1, 1, 0}, {-1, -1, 0}};
constexpr Form kDot{{-1, -1, 0}, {-1, 0, -1}, {-1, -1, -1}};

int64_t at(std::span<const int64_t> values, int dim, int64_t none) {
  return dim < 0 ? none : values[static_cast<size_t>(dim)];
}
Matrix matrix(tb_address address, std::span<const int64_t> strides, const Parts& parts) {
  return {address, at(strides, parts.batch, 0), at(strides, parts.row, 0),
          at(strides, parts.col, 0)};
}

struct Added {
  TensorView self;
  Scalar beta, alpha;
};

// As in ATen, bool has no products, but may be the type of a sum of none, which is computed in
// bytes.
DType type_of_products(const OpCall& call, TensorView a, TensorView out, bool added) {
  const DType type = a.dtype();
  const bool is_empty = out.numel() == 0 || (a.numel() == 0 && !added);
  if (is_float8(type) || (type == DType::Bool && !is_empty))
    unsupported(TB_REASON_DTYPE, "{} is not implemented for {}", call.name(), name(type));
  return type == DType::Bool ? DType::UInt8 : type;
}

void multiply(OpCall& call, const Form& form, TensorView a, TensorView b, const Added* added) {
  const TensorView out = call.out(0);
  (void)check_outputs(call);
  const DType type = type_of_products(call, a, out, added != nullptr);
  check(added == nullptr || is_complex(a.dtype()) ||
            (!added->beta.is_complex() && !added->alpha.is_complex()),
        "{}: alpha and beta must not be complex for {}", call.name(), name(a.dtype()));
  Dims self_strides;
  const bool uses_self = added != nullptr && added->beta.as_bool();
  if (uses_self)
    self_strides = broadcast_strides(added->self.sizes(), added->self.strides(), out.sizes());
  call.accept();
  if (out.numel() == 0) return;

  // Outputs whose elements overlap, or that have neither contiguous rows nor contiguous columns, go
  // through scratch memory.
  const Matrix target_layout = matrix(out.address(), out.strides(), form.c);
  const bool rows_or_columns =
      target_layout.col == 1 || target_layout.row == 1 || out.is_contiguous();
  const bool direct = rows_or_columns && !has_internal_overlap(out.sizes(), out.strides());
  std::optional<ContiguousOutput> copy;
  if (!direct) copy.emplace(call, out);
  const TensorView target = direct ? out : copy->view();
  Problem p{.dtype = type,
            .batch = at(out.sizes(), form.c.batch, 1),
            .m = at(out.sizes(), form.c.row, 1),
            .n = at(out.sizes(), form.c.col, 1),
            .k = at(a.sizes(), form.a.col, 1),
            .a = matrix(a.address(), a.strides(), form.a),
            .b = matrix(b.address(), b.strides(), form.b),
            .c = matrix(target.address(), target.strides(), form.c),
            .self = std::nullopt};
  if (added != nullptr) p.alpha = added->alpha;
  if (uses_self) {
    p.self = matrix(added->self.address(), self_strides, form.c);
    p.beta = added->beta;
  }
  p.sums_in_int32 = out.dtype() != a.dtype() && type == DType::Int8;
  p.sums_in_int32 ? run_int8_matmul(call, p) : run_matmul(call, p);
  if (copy) copy->finish();
}

void plain(OpCall& call, const Form& form) {
  const infer::Factors factors = infer::factors_of(call.args());
  multiply(call, form, call.args().tensor(factors.a), call.args().tensor(factors.b), nullptr);
}
void plus(OpCall& call, const Form& form) {
  const Args& args = call.args();
  const Added added{args.tensor(Arg::self), args.number(Arg::beta), args.number(Arg::alpha)};
  const infer::Factors factors = infer::factors_of(args);
  multiply(call, form, args.tensor(factors.a), args.tensor(factors.b), &added);
}
void mv(OpCall& call) {
  multiply(call, kVector, call.args().tensor(Arg::vec), call.args().tensor(Arg::self), nullptr);
}
void addmv(OpCall& call) {
  const Args& args = call.args();
  const Added added{args.tensor(Arg::self), args.number(Arg::beta), args.number(Arg::alpha)};
  multiply(call, kVector, args.tensor(Arg::vec), args.tensor(Arg::mat), &added);
}

constexpr OpEntry kOperators[] = {
    {"mm.out", [](OpCall& call) { plain(call, kMatrix); }, true, false, true},
    {"bmm.out", [](OpCall& call) { plain(call, kBatch); }, true, false, true},
    {"dot.out", [](OpCall& call) { plain(call, kDot); }, true, false, true},
    {"mv.out", mv, true, false, true},
    {"addmm.out", [](OpCall& call) { plus(call, kMatrix); }, true, false, true},
    {"baddbmm.out", [](OpCall& call) { plus(call, kBatch); }, true, false, true},
    {"addmv.out", addmv, true, false, true},
};
constexpr OpEntry kInt8Operators[] = {
    {"_int_mm.out", [](OpCall& call) { plain(call, kMatrix); }, true, false, true},
};

}  // namespace

std::span<const OpEntry> matmul_operators() { return kOperators; }
std::span<const OpEntry> matmul_int8_operators() { return kInt8Operators; }

}  // namespace ocltensor::opencl::matmul
