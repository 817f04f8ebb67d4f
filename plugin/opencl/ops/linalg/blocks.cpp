// What the factorisations share: launches, products, triangles and solves with them.
#include "call/division.h"
#include "kernels/linalg.h"
#include "linalg.h"

namespace ocltensor::opencl::linalg {

LinalgParams params_of(const Stack& a, const Stack& b) {
  LinalgParams p{};
  p.count = a.count;
  p.rows = a.rows;
  p.columns = a.columns;
  p.a_batch = a.at.batch;
  p.a_row = a.at.row;
  p.a_col = a.at.col;
  p.b_batch = b.at.batch;
  p.b_row = b.at.row;
  p.b_col = b.at.col;
  return p;
}

void run_rows(const OpCall& call, Launch launch, int64_t rows) {
  const auto lanes = by_style<int64_t>(call, 1, kPanel);
  launch.run({lanes * rows, 1, 1}, {lanes, 1, 1});
}

void run_items(const OpCall& call, Launch launch, int64_t items) {
  const auto group = by_style<int64_t>(call, 1, kPanel);
  launch.run({divide_up(items, group) * group, 1, 1}, {group, 1, 1});
}

void multiply(const OpCall& call, const Stack& c, const Stack& a, const Stack& b, bool subtract) {
  matmul::Problem problem{.types = c.dtype,
                          .batch = c.count,
                          .m = c.rows,
                          .n = c.columns,
                          .k = a.columns,
                          .a = a.at,
                          .b = b.at,
                          .c = c.at,
                          .conjugate_a = a.conjugate,
                          .conjugate_b = b.conjugate};
  if (subtract) {
    problem.end.alpha = -1;
    problem.end.add(c.at);
  }
  matmul::run_matmul(call, problem);
}

void copy_triangle(const OpCall& call, const Stack& a, const Stack& b, bool unit_lower) {
  LinalgParams p = params_of(a, b);
  p.rows = b.rows;
  p.columns = b.columns;
  run_rows(call,
           launch_typed(call, a.dtype, kernels::linalg::blocks_parts::triangle,
                        {.a = a, .b = b, .unit = unit_lower, .p = p}),
           b.count * b.rows);
}

namespace {

constexpr PanelKernel kSolve{kernels::linalg::blocks_solve_cpu::solve,
                             kernels::linalg::blocks_solve_gpu::solve};

}  // namespace

void solve_block(const OpCall& call, const Stack& t, const Stack& b, Triangle kind) {
  if (b.count * b.rows * b.columns == 0) return;
  const bool upper = kind == Triangle::Upper || kind == Triangle::UnitUpper;
  const Stack triangle = upper ? t.reversed() : t;
  const Stack right = upper ? b.rows_reversed() : b;
  LinalgParams p = params_of(triangle, right);
  p.columns = b.columns;
  Defines d;
  d.set(define::UNIT, kind == Triangle::UnitLower || kind == Triangle::UnitUpper);
  if (t.conjugate) d.set(define::CONJUGATE, 1);
  run_panels(call, kSolve, {.panel = triangle, .columns = b.columns}, d,
             {.a = triangle, .b = right, .p = p});
}

void solve_triangle(const OpCall& call, const Stack& t, const Stack& b, Triangle kind) {
  const bool upper = kind == Triangle::Upper || kind == Triangle::UnitUpper;
  const int64_t n = t.rows;
  const int64_t k = b.columns;
  for (int64_t step = 0; step < divide_up(n, kPanel); ++step) {
    const int64_t i = (upper ? divide_up(n, kPanel) - 1 - step : step) * kPanel;
    const int64_t size = std::min(kPanel, n - i);
    const int64_t known = upper ? n - i - size : i;
    const int64_t first = upper ? i + size : 0;
    if (known > 0)
      multiply(call, b.block(i, 0, size, k), t.block(i, first, size, known),
               b.block(first, 0, known, k), true);
    solve_block(call, t.block(i, i, size, size), b.block(i, 0, size, k), kind);
  }
}

}  // namespace ocltensor::opencl::linalg
