// Products of a few rows (or columns) for GPUs: the other operand is read once, by enough
// work-items to keep the memory busy; k is cut into pieces where the columns alone are too few for
// that.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "kernels/matmul.h"
#include "split_k_sum.h"

namespace ocltensor::opencl::matmul {
namespace {

constexpr int64_t kItems = 256;  // ITEMS of the kernels
constexpr int64_t kChunk = 128;  // CHUNK of skinny_columns.cl
constexpr int64_t kShort = 32;   // sums shorter than this are not worth sharing among work-items
constexpr int64_t kVectorBytes = 16;

// The same product with few rows: where it has few columns instead, both matrices are transposed
// and exchanged.
Problem with_few_rows(const Problem& p) {
  if (p.m <= p.n) return p;
  Problem q = p;
  std::swap(q.m, q.n);
  q.a = transposed(p.b);
  q.b = transposed(p.a);
  q.c = transposed(p.c);
  q.types = transposed(p.types);
  q.end = transposed(p.end);
  return q;
}

// B as with_few_rows() has it: the operand that is read once.
Matrix read_once(const Problem& p) { return p.m <= p.n ? p.b : transposed(p.a); }

// Elements of a vector, of either operand: 16 bytes of the type that is summed; 1: no vectors.
int64_t vector_of(DType type) {
  return size_of(type) <= 4 && is_floating(type) ? kVectorBytes / size_of(type) : 1;
}
// Whether an operand of a type may be read by vectors along a dimension of `along` elements, which
// are `step` apart, and whose lines are `line` apart.
bool has_vectors(const Problem& p, const Matrix& m, DType type, int64_t step, int64_t line,
                 int64_t along) {
  const int64_t vector = vector_of(p.type());
  return step == 1 && line % vector == 0 && along % vector == 0 && along > 0 &&
         m.address % static_cast<uint64_t>(vector * size_of(type)) == 0 &&
         (p.batch == 1 || m.batch % vector == 0);
}

// What a kernel is specialised by, and how the work is divided.
struct SkinnyPlan {
  int64_t rows, vector, columns;  // of a work-group
  int64_t pieces = 1, length = 0;
  int64_t groups(const Problem& p) const {
    return p.batch * divide_up(p.m, rows) * divide_up(p.n, columns);
  }
};

// Rows of a work-item: as many as it can keep results of in registers.
int64_t most_rows_of_item(const OpCall& call, DType type) {
  return (type == DType::Float32 ? 16 : 8) / (call.caps().large_register_tiles() ? 1 : 2);
}
int64_t rows_of(const OpCall& call, const Problem& p) {
  int64_t rows = 1;
  while (rows < std::min(p.m, most_rows_of_item(call, p.type()))) rows *= 2;
  return rows;
}

// The measured sizes of a run; 0: by rule.
struct SkinnySizes {
  int64_t width;   // work-items that share a column (dots), or lie across the columns (columns)
  int64_t pieces;  // of k
};

// Cuts k into pieces, each a multiple of `step` and at least `least` long: so many, or until every
// compute unit has two work-groups.
void cut(const OpCall& call, const Problem& p, const SkinnySizes& sizes, SkinnyPlan& plan,
         int64_t step, int64_t least) {
  constexpr int64_t kMost = 64, kFewResults = 2048;
  const int64_t wanted = 2 * static_cast<int64_t>(call.caps().compute_units);
  const int64_t most = p.batch * p.m * p.n <= kFewResults ? 8 * kMost : kMost;
  const int64_t by_rule = divide_up(wanted, plan.groups(p));
  const int64_t pieces =
      std::min({sizes.pieces != 0 ? sizes.pieces : by_rule, divide_up(p.k, least), most});
  plan.length = divide_up(divide_up(p.k, std::max<int64_t>(pieces, 1)), step) * step;
  plan.pieces = p.k == 0 ? 1 : divide_up(p.k, plan.length);
}

void enqueue(const OpCall& call, const Problem& p, const SkinnyPlan& plan, const auto& kernel,
             std::initializer_list<std::pair<DefineName, int64_t>> own) {
  const bool partial = plan.pieces > 1;
  Problem summed = p;  // whose pieces end later
  if (partial) summed.end = {};
  Defines d = matmul_defines(summed);
  for (const auto& [name, value] : own) d.set(name, value);
  d.set(define::ROWS, plan.rows).set(define::VEC, plan.vector).set(define::PARTIAL, partial);
  std::optional<Scratch> sums;
  const int64_t bytes = plan.pieces * p.batch * p.m * p.n * sum_bytes(p.type());
  if (partial) sums.emplace(call.scratch(static_cast<uint64_t>(bytes)));
  const int64_t groups = plan.groups(p) * plan.pieces;
  call.launch(kernel, d,
              {.c = partial ? MemoryRange(*sums) : memory_of_c(p),
               .a = memory_of_a(p),
               .b = memory_of_b(p),
               .s = memory_of_self(summed),
               .scales = given_scales(summed),
               .pieces = static_cast<uint32_t>(plan.pieces),
               .batch = static_cast<uint32_t>(p.batch),
               .length = plan.length,
               .p = matmul_params(p)})
      .run({groups * kItems, 1, 1}, {kItems, 1, 1});
  if (partial) sum_pieces(call, results_of(p), plan.pieces, sums->address());
}

// ---- B along k

// How many work-items share a column: as many as k has work for, until the device is full.
int64_t lanes_of(const OpCall& call, const Problem& p, const SkinnyPlan& plan, int64_t columns) {
  const int64_t full = 1024 * static_cast<int64_t>(call.caps().compute_units);
  const int64_t teams = p.batch * divide_up(p.m, plan.rows) * divide_up(p.n, columns);
  int64_t lanes = 8;
  while (lanes < kItems && 2 * lanes * plan.vector <= p.k && (lanes < 32 || teams * lanes < full))
    lanes *= 2;
  return lanes;
}

void run_dots(const OpCall& call, const Problem& problem, const SkinnySizes& sizes) {
  const Problem p = with_few_rows(problem);
  const bool vectors = has_vectors(p, p.a, p.types.a, p.a.col, p.a.row, p.k) &&
                       has_vectors(p, p.b, p.types.b, p.b.row, p.b.col, p.k);
  SkinnyPlan plan{rows_of(call, p), vectors ? vector_of(p.type()) : 1, 0};
  const int64_t columns = p.n < 4 ? 1 : 4;
  const int64_t lanes = sizes.width != 0 ? sizes.width : lanes_of(call, p, plan, columns);
  plan.columns = columns * kItems / lanes;
  const int64_t step = lanes * plan.vector;
  cut(call, p, sizes, plan, step, 2 * step);
  enqueue(call, p, plan, kernels::matmul::skinny_dots::matmul_dots,
          {{define::COLS, columns}, {define::LANES, lanes}});
}

// ---- B along its columns

void run_columns(const OpCall& call, const Problem& problem, const SkinnySizes& sizes) {
  const Problem p = with_few_rows(problem);
  const bool vectors = has_vectors(p, p.b, p.types.b, p.b.col, p.b.row, p.n);
  SkinnyPlan plan{rows_of(call, p), vectors ? vector_of(p.type()) : 1, 0};
  const int64_t by_rule = p.n <= 8 * plan.vector ? 8 : 32;
  const int64_t across = sizes.width != 0 ? sizes.width : by_rule;
  plan.columns = across * plan.vector;
  cut(call, p, sizes, plan, kItems / across * 4, kChunk / 2);
  enqueue(call, p, plan, kernels::matmul::skinny_columns::matmul_columns,
          {{define::ACROSS, across}});
}

// ---- The algorithms

const char* refuse(const OpCall& call, const Problem& p) {
  if (std::min(p.m, p.n) > most_skinny_rows(p.type())) return "more than a few rows";
  if (call.caps().max_work_group_size < static_cast<size_t>(kItems))
    return "work-groups are too small";
  constexpr int64_t kMost = int64_t{1} << 30;  // work-groups, which kernels count in 32 bits
  if (p.batch > kMost / 512 / most_skinny_rows(p.type()) ||
      std::max(p.m, p.n) > kMost / 512 / p.batch)
    return "the sizes need 64 bits";
  return nullptr;
}
// Kernels count rows and columns within a work-item in 32 bits, from the first one on; both strides
// are checked, as with_few_rows() may exchange them.
const char* refuse_dots(const OpCall& call, const Problem& p) {
  if (const char* reason = refuse(call, p)) return reason;
  constexpr int64_t kMost = int64_t{1} << 31;
  if (p.k >= kMost || std::max(std::abs(p.a.row), std::abs(p.b.col)) >= kMost / 16)
    return "the strides need 64 bits";
  return nullptr;
}
const char* refuse_columns(const OpCall& call, const Problem& p) {
  if (const char* reason = refuse(call, p)) return reason;
  return read_once(p).col == 1 ? nullptr : "the columns of B are not neighbours";
}

// The sizes of a configuration whose width is one of `widths`.
Planned<SkinnySizes> plan_sizes(const Configuration& c, std::initializer_list<int64_t> widths) {
  if (c.empty()) return SkinnySizes{0, 0};
  if (c.size() != 2 || std::ranges::find(widths, c[0]) == widths.end()) return "no such width";
  if (c[1] < 1) return "no such number of pieces";
  return SkinnySizes{c[0], c[1]};
}
Configurations space_of(const Problem& p, std::initializer_list<int64_t> widths) {
  constexpr int64_t kShortest = 64;  // terms of a piece
  Configurations all;
  for (int64_t pieces = 1; pieces <= 64 && pieces * kShortest <= p.k; pieces *= 2)
    for (const int64_t width : widths) all.push_back({width, pieces});
  return all;
}

Planned<SkinnySizes> plan_dots(const OpCall& call, const Problem& p, const Configuration& c) {
  if (const char* reason = refuse_dots(call, p)) return reason;
  return plan_sizes(c, {8, 16, 32, 64, 128, 256});
}
Configurations space_of_dots(const OpCall&, const Problem& p) {
  return space_of(p, {32, 64, 256, 16});
}
Planned<SkinnySizes> plan_columns(const OpCall& call, const Problem& p, const Configuration& c) {
  if (const char* reason = refuse_columns(call, p)) return reason;
  return plan_sizes(c, {8, 32});
}
Configurations space_of_columns(const OpCall&, const Problem& p) { return space_of(p, {32, 8}); }

const char* pass_over(const OpCall&, const Problem& p) {
  if (p.k < kShort) return "the sums are short";
  return nullptr;
}
bool lies_along_columns(const Problem& p) {
  const Matrix b = read_once(p);
  return b.col == 1 && b.row != 1;
}
const char* pass_over_dots(const OpCall& call, const Problem& p) {
  if (const char* reason = pass_over(call, p)) return reason;
  if (std::min(p.m, p.n) > most_rows_of_item(call, p.type()))
    return "more rows than a work-item keeps";
  return lies_along_columns(p) ? "B does not lie along k" : nullptr;
}

}  // namespace

int64_t most_skinny_rows(DType type) { return type == DType::Float32 ? 32 : 16; }

// Measured on an H200 with B of 2048 x 2048, in microseconds: matrix units take 33 to 42 for 32
// rows; dot products take 16, 39 and 80 for 4, 16 and 32 rows; `columns` takes 21 to 25 for 32
// rows.
bool skinny_beats_matrix_units(const Problem& p) {
  constexpr int64_t kMostDots = 8;
  return std::min(p.m, p.n) <= (lies_along_columns(p) ? most_skinny_rows(p.type()) : kMostDots);
}

constinit const AlgorithmFor<Problem> kDots({.id = "matmul.dots",
                                             .description = "dot products",
                                             .style = DeviceStyle::Gpu,
                                             .parameters = {"lanes", "pieces"}},
                                            Steps<plan_dots, run_dots, space_of_dots>(),
                                            pass_over_dots);
constinit const AlgorithmFor<Problem> kColumns({.id = "matmul.columns",
                                                .description = "columns side by side",
                                                .style = DeviceStyle::Gpu,
                                                .parameters = {"across", "pieces"}},
                                               Steps<plan_columns, run_columns, space_of_columns>(),
                                               pass_over);

}  // namespace ocltensor::opencl::matmul
