// Complex products as one real product of twice the inner size. A row of A stays as it is in
// memory, [re im re im ..]; every element of B becomes the 2 x 2 matrix [re im; -im re]; then the
// rows of the real product are those of C, [re im ..], too. So A and C are only reinterpreted, the
// smaller operand is expanded once to twice its size, and the real kernels, fast ones included, do
// the rest, with as many operations as four real products.
#include "matmul.h"
#include "ops/copy/copy.h"
#include "ops/elementwise/elementwise.h"

namespace ocltensor::opencl::matmul {
namespace {

constexpr elementwise::Formula kScale{"matmul_scale", elementwise::FormulaForm::Lanes,
                                      "cscale(s0, a)"};
constexpr elementwise::Formula kScaleTurned{"matmul_turn", elementwise::FormulaForm::Lanes,
                                            "cturn(cscale(s0, a))"};
constexpr elementwise::Formula kConjugate{"matmul_conjugate", elementwise::FormulaForm::Lanes,
                                          "cscale(s0, cconj(a))"};
constexpr elementwise::Formula kConjugateTurned{
    "matmul_conjugate_turn", elementwise::FormulaForm::Lanes, "cturn(cscale(s0, cconj(a)))"};

LocalTensor tensor_of(DType type, const Matrix& m, int64_t batch, int64_t rows, int64_t columns) {
  return LocalTensor(m.address, type, Dims{batch, rows, columns}, Dims{m.batch, m.row, m.col});
}

void scaled(const OpCall& call, TensorView out, TensorView in, Scalar by,
            const elementwise::Formula& formula) {
  const elementwise::ElementwiseInput input{&in, 0, false};
  elementwise::launch_elementwise(
      call, out, {&formula, compute_type(in.dtype()), out.dtype(), false, {&input, 1}, {&by, 1}});
}

// The same matrix in real numbers: rows of pairs.
Matrix pairs(const Matrix& m) { return {m.address, 2 * m.batch, 2 * m.row, 1}; }

}  // namespace

void run_complex_matmul(const OpCall& call, const Problem& problem) {
  Problem p = problem;
  const DType type = p.types.a;
  const auto bytes_of = [type](int64_t elements) {
    return static_cast<uint64_t>(elements * size_of(type));
  };
  if (p.n == 1) p.c.col = 1;
  if (p.m == 1 || (p.c.col != 1 && p.c.row == 1)) {
    std::swap(p.m, p.n);
    p.a = transposed(std::exchange(p.b, transposed(p.a)));
    p.c = transposed(p.c);
    std::swap(p.conjugate_a, p.conjugate_b);
    p.end = transposed(p.end);
    if (p.n == 1) p.c.col = 1;
  }
  // Rows of A have to be contiguous, and as they are in memory.
  const int64_t a_batch = p.a.batch == 0 ? 1 : p.batch;
  const bool copies = p.conjugate_a || (p.a.col != 1 && p.k > 1);
  const Scratch rows = call.scratch(copies ? bytes_of(a_batch * p.m * p.k) : 0);
  if (copies) {
    const Matrix dense{rows.address(), p.m * p.k, p.k, 1};
    const LocalTensor to = tensor_of(type, dense, a_batch, p.m, p.k);
    const LocalTensor from = tensor_of(type, p.a, a_batch, p.m, p.k);
    if (!p.conjugate_a)
      copy_tensor(call, to, from);
    else if (to.view().numel() > 0)
      scaled(call, to, from, 1, kConjugate);
    p.a = {dense.address, a_batch == 1 ? 0 : dense.batch, dense.row, 1};
  }
  const int64_t b_batch = p.b.batch == 0 ? 1 : p.batch;
  const Scratch expanded = call.scratch(bytes_of(2 * b_batch * p.k * p.n));
  if (b_batch * p.k * p.n > 0) {
    const LocalTensor b = tensor_of(type, p.b, b_batch, p.k, p.n);
    Matrix half{expanded.address(), 2 * p.k * p.n, 2 * p.n, 1};
    scaled(call, tensor_of(type, half, b_batch, p.k, p.n), b, p.end.alpha,
           p.conjugate_b ? kConjugate : kScale);
    half.address += bytes_of(p.n);
    scaled(call, tensor_of(type, half, b_batch, p.k, p.n), b, p.end.alpha,
           p.conjugate_b ? kConjugateTurned : kScaleTurned);
  }
  const Scratch added = call.scratch(p.end.self ? bytes_of(p.batch * p.m * p.n) : 0);
  std::optional<Matrix> self;
  if (p.end.self) {
    const Matrix dense{added.address(), p.m * p.n, p.n, 1};
    scaled(call, tensor_of(type, dense, p.batch, p.m, p.n),
           tensor_of(type, *p.end.self, p.batch, p.m, p.n), p.end.beta, kScale);
    self = pairs(dense);
  }
  run_matmul(call, {.types = real_type(type),
                    .batch = p.batch,
                    .m = p.m,
                    .n = 2 * p.n,
                    .k = 2 * p.k,
                    .a = pairs(p.a),
                    .b = {expanded.address(), b_batch == 1 ? 0 : 4 * p.k * p.n, 2 * p.n, 1},
                    .c = pairs(p.c),
                    .end = {.alpha = 1, .beta = 1, .self = self}});
}

}  // namespace ocltensor::opencl::matmul
