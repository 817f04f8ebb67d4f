// mm, bmm, mv, dot, addmm, baddbmm, addmv, and their forms with another result type, scales or an
// activation: each becomes a Problem.
#include "base/infer/common.h"
#include "call/division.h"
#include "matmul.h"
#include "ops/pointwise/pointwise.h"

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

// What the result ends with besides what is added.
struct More {
  std::optional<TensorView> scales;
  const elementwise::Formula* formula = nullptr;
};

void multiply(OpCall& call, const Form& form, TensorView a, TensorView b, const Added* added,
              const More& more = {}) {
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
  Dims scale_strides;
  if (more.scales)
    scale_strides = broadcast_strides(more.scales->sizes(), more.scales->strides(), out.sizes());
  const Types types =
      b.dtype() == a.dtype() && out.dtype() == a.dtype()
          ? Types(type)
          : Types(type, b.dtype(), out.dtype(), uses_self ? added->self.dtype() : out.dtype());
  if (!is_product_of(types))
    unsupported(TB_REASON_DTYPE, "{} is not implemented for {} and {} with results of {}",
                call.name(), name(a.dtype()), name(b.dtype()), name(out.dtype()));
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
  Problem p{.types = types,
            .batch = at(out.sizes(), form.c.batch, 1),
            .m = at(out.sizes(), form.c.row, 1),
            .n = at(out.sizes(), form.c.col, 1),
            .k = at(a.sizes(), form.a.col, 1),
            .a = matrix(a.address(), a.strides(), form.a),
            .b = matrix(b.address(), b.strides(), form.b),
            .c = matrix(target.address(), target.strides(), form.c)};
  if (added != nullptr) p.end.alpha = added->alpha;
  if (uses_self) {
    p.end.self = matrix(added->self.address(), self_strides, form.c);
    p.end.beta = added->beta;
  }
  if (more.scales)
    p.end.scales = {more.scales->dtype(), matrix(more.scales->address(), scale_strides, form.c)};
  p.end.formula = more.formula;
  run_matmul(call, p);
  if (copy) copy->finish();
}

void plain(OpCall& call, const Form& form) {
  const infer::Factors factors = infer::factors_of(call.args());
  multiply(call, form, call.args().tensor(factors.a), call.args().tensor(factors.b), nullptr);
}
void plus(OpCall& call, const Form& form, const More& more = {}) {
  const Args& args = call.args();
  const Added added{args.tensor(Arg::self), args.number(Arg::beta), args.number(Arg::alpha)};
  const infer::Factors factors = infer::factors_of(args);
  multiply(call, form, args.tensor(factors.a), args.tensor(factors.b), &added, more);
}
void activated(OpCall& call) {
  static const elementwise::Formula& relu = pointwise::formula_of("relu.out");
  static const elementwise::Formula& relu_of_integers = pointwise::formula_of("relu.out@int");
  static const elementwise::Formula& gelu = pointwise::formula_of("gelu.out");
  const TensorView out = call.out(0);
  const bool use_gelu = call.args().boolean(Arg::use_gelu);
  if (is_floating(out.dtype())) return plus(call, kMatrix, {.formula = use_gelu ? &gelu : &relu});
  if (is_complex(out.dtype()) || use_gelu)
    unsupported(TB_REASON_DTYPE, "{} is not implemented for {}", call.name(), name(out.dtype()));
  plus(call, kMatrix);
  const elementwise::ElementwiseInput input{&out};
  elementwise::launch_elementwise(
      call, out, {&relu_of_integers, out.dtype(), out.dtype(), false, {&input, 1}, {}});
}
void scaled(OpCall& call) {
  const Args& args = call.args();
  multiply(call, kMatrix, args.tensor(Arg::self), args.tensor(Arg::mat2), nullptr,
           {.scales = args.tensor(Arg::scales)});
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
    {"_int_mm.out", [](OpCall& call) { plain(call, kMatrix); }, false, false, true},
    {"mm.dtype_out", [](OpCall& call) { plain(call, kMatrix); }, false, false, true},
    {"bmm.dtype_out", [](OpCall& call) { plain(call, kBatch); }, false, false, true},
    {"addmm.dtype_out", [](OpCall& call) { plus(call, kMatrix); }, false, false, true},
    {"baddbmm.dtype_out", [](OpCall& call) { plus(call, kBatch); }, false, false, true},
    {"_addmm_activation.out", activated},
    {"_ocl_scaled_mm.out", scaled, false, false, true},
};

}  // namespace

std::span<const OpEntry> matmul_operators() { return kOperators; }

}  // namespace ocltensor::opencl::matmul
