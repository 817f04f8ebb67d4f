// lu.panels: LU factorisation with partial pivoting, panel by panel, and solves with it.
#include "lu.h"

#include <bit>
#include <optional>

#include "call/division.h"
#include "kernels/linalg.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::linalg {
namespace {

constexpr PanelKernel kLu{kernels::linalg::lu_cpu::lu, kernels::linalg::lu_gpu::lu};

constexpr int64_t kNoColumn = INT64_MAX;

// How a work-group of a GPU holds a panel in registers: each work-item `rows` rows of `width`
// columns.
struct HeldPanel {
  int64_t group, rows, width;
};

// For the panel of the stack's first columns; nullopt: it is too tall. `first` is the number of
// columns left of it, of which the width is a divisor, so that it ends within the padding.
std::optional<HeldPanel> held_panel(const OpCall& call, const Stack& a, int64_t first) {
  const int64_t item_bytes = call.caps().large_register_tiles() ? 256 : 128;
  constexpr int64_t kGroupBytes = 128 << 10;
  constexpr int64_t kLeastWidth = 8;
  if (is_cpu_style(call)) return std::nullopt;
  const int64_t most = std::bit_floor(static_cast<uint64_t>(call.caps().max_work_group_size));
  const auto to_power = [](int64_t n) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  };
  HeldPanel held{};
  held.width = std::clamp(to_power(a.columns), kLeastWidth, kPanel);
  // Several rows of a work-item share what it reads of the pivot's row.
  held.rows = std::max<int64_t>(1, item_bytes / (held.width * size_of(a.dtype)));
  held.group = std::clamp(to_power(divide_up(a.rows, held.rows)), kPanel, most);
  held.rows = divide_up(a.rows, held.group);
  const auto fits = [&] {
    const int64_t bytes = held.rows * held.width * size_of(a.dtype);
    return bytes <= item_bytes && held.group * bytes <= kGroupBytes;
  };
  while ((!fits() || first % held.width != 0) && held.width > kLeastWidth) held.width /= 2;
  return fits() ? std::optional(held) : std::nullopt;
}

// Factors a panel of `a`, its first columns: as many as there are rows for, or a panel's; returns
// how many.
int64_t factor_panel(const OpCall& call, const Stack& a, TensorView pivots, TensorView info,
                     int64_t first, bool pivot) {
  const std::optional<HeldPanel> held = held_panel(call, a, first);
  const int64_t width = std::min(held ? held->width : kPanel, a.columns);
  const Stack panel = a.block(0, 0, a.rows, width);
  Defines d;
  d.set(define::PIVOT, pivot);
  LinalgParams p = params_of(panel, panel);
  p.steps = std::min(width, a.rows);
  p.first = first;
  p.vector_batch = pivots.size(-1);
  if (!held) {
    run_panels(call, kLu, {panel}, d, {.a = panel, .pivot = pivots, .info = info, .p = p});
    return width;
  }
  call.launch(kernels::linalg::lu_rows::lu,
              with_numbers(d, panel.dtype)
                  .set(define::GROUP, held->group)
                  .set(define::ROWS, held->rows)
                  .set(define::WIDTH, held->width),
              {.a = panel, .pivot = pivots, .info = info, .p = p})
      .run({panel.count * held->group, 1, 1}, {held->group, 1, 1});
  return width;
}

// Columns of a matrix that rows are not interchanged in.
struct Skipped {
  int64_t first = kNoColumn;
  int64_t count = 0;
};

// Interchanges rows as pivots [first, first + steps) say, in `columns` columns but those skipped.
void swap_rows(const OpCall& call, const Stack& a, TensorView pivots, int64_t first, int64_t steps,
               int64_t columns, Skipped skipped, bool backward) {
  if (a.count * columns * steps == 0) return;
  // A complex number is two real ones that move together.
  const int64_t parts = is_complex(a.dtype) ? 2 : 1;
  Defines d;
  d.type(define::TYPE, real_type(a.dtype)).set(define::BACKWARD, backward);
  LinalgParams p = params_of(a, a);
  p.columns = columns * parts;
  p.a_batch *= parts;
  p.a_row *= parts;
  p.first = first;
  p.steps = steps;
  p.vector_batch = pivots.size(-1);
  const int64_t skip = skipped.first == kNoColumn ? kNoColumn : skipped.first * parts;
  const int64_t skipped_columns = skipped.count * parts;
  if (is_cpu_style(call)) {
    call.launch(kernels::linalg::lu_swap_cpu::swap, d,
                {.a = a, .pivot = pivots, .skip = skip, .skipped = skipped_columns, .p = p})
        .run({a.count * divide_up(p.columns, 16), 1, 1}, {1, 1, 1});
    return;
  }
  const auto group = std::clamp<int64_t>(std::bit_ceil(static_cast<uint64_t>(p.columns)), 32, 64);
  call.launch(kernels::linalg::lu_swap_gpu::swap, d.set(define::GROUP, group),
              {.a = a, .pivot = pivots, .skip = skip, .skipped = skipped_columns, .p = p})
      .run({a.count * divide_up(p.columns, group) * group, 1, 1}, {group, 1, 1});
}

void factor(const OpCall& call, const LuProblem& p) {
  copy::fill_tensor(call, p.info, 0);
  const Dims batch = batch_of(p.a);
  Packed a(call, p.a.dtype(), batch, p.a.size(-2), p.a.size(-1));
  a.load(p.a);
  factor_lu(call, a.stack(), p.pivots, p.info, p.pivot);
  if (p.lu) a.store(*p.lu);
  if (!p.x) return;
  const LocalTensor target = on_left(*p.x, p.left);
  const Dims results = batch_of(target);
  Packed x(call, target.dtype(), results, target.view().size(-2), target.view().size(-1));
  if (p.b)
    x.load(on_left(*p.b, p.left));
  else
    x.set_identity();
  if (results == batch) {
    solve_lu(call, a.stack(), p.pivots, x.stack(), !p.left);
  } else {
    const Operand factors(call, *p.lu, results);
    solve_lu(call, factors.stack(), Vectors(call, p.pivots, results).view(), x.stack(), !p.left);
  }
  x.store(target);
}

}  // namespace

constinit const AlgorithmFor<LuProblem> kPanelsLu({.id = "lu.panels",
                                                   .description = "panels of columns, and products",
                                                   .last_resort = true},
                                                  Steps<takes_all<LuProblem>, factor>());

void factor_lu(const OpCall& call, const Stack& a, TensorView pivots, TensorView info, bool pivot) {
  const int64_t m = a.rows;
  const int64_t n = a.columns;
  int64_t next = 0;
  for (int64_t j = 0; j < std::min(m, n); j = next) {
    const Stack rest = a.block(j, j, m - j, n - j);
    const int64_t width = factor_panel(call, rest, pivots, info, j, pivot);
    const int64_t size = std::min(width, m - j);
    next = j + width;
    if (pivot) swap_rows(call, a, pivots, j, size, n - width, {j, width}, false);
    if (next == n) continue;
    const Stack right = a.block(j, next, size, n - next);
    solve_block(call, a.block(j, j, size, size), right, Triangle::UnitLower);
    if (m > next)
      multiply(call, a.block(next, next, m - next, n - next), a.block(next, j, m - next, size),
               right, true);
  }
}

void solve_lu(const OpCall& call, const Stack& lu, TensorView pivots, const Stack& b,
              bool transposed) {
  const int64_t n = lu.rows;
  if (!transposed) {
    swap_rows(call, b, pivots, 0, n, b.columns, {}, false);
    solve_triangle(call, lu, b, Triangle::UnitLower);
    solve_triangle(call, lu, b, Triangle::Upper);
  } else {
    solve_triangle(call, lu.transposed(), b, Triangle::Lower);
    solve_triangle(call, lu.transposed(), b, Triangle::UnitUpper);
    swap_rows(call, b, pivots, 0, n, b.columns, {}, true);
  }
}

}  // namespace ocltensor::opencl::linalg
