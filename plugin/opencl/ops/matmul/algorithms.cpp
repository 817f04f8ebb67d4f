// The ordered list of algorithms for matrix products, and the code that they share.
#include <algorithm>
#include <limits>
#include <utility>

#include "call/divide_up.h"
#include "call/scalar_bits.h"
#include "kernels/defines.h"
#include "matmul.h"

namespace ocltensor::opencl::matmul {
namespace {

// "float16", or "float16 x int8 to float32".
std::string text_of(const Types& t) {
  std::string text(name(t.a));
  if (t.b != t.a) text += fmt::format(" x {}", name(t.b));
  if (t.result != t.of_sums()) text += fmt::format(" to {}", name(t.result));
  return text;
}
// The same as a number, for keys of measurements: alike types are that of one.
int64_t number_of(const Types& t) {
  const auto number = [](DType type) { return static_cast<int64_t>(type); };
  return number(t.a) | (number(t.b) ^ number(t.a)) << 8 | (number(t.result) ^ number(t.a)) << 16;
}
Types types_of(int64_t number) {
  const int64_t a = number & 0xff;
  const auto type = [&](int shift) { return static_cast<DType>(a ^ (number >> shift & 0xff)); };
  return {static_cast<DType>(a), type(8), type(16), type(16)};
}

struct MatmulTraits {
  static std::string describe(const OpCall&, const Problem& p) {
    return fmt::format("matmul {} {} x {} x {} x {}", text_of(p.types), p.batch, p.m, p.n, p.k);
  }
  static std::string notes(const OpCall& call, const Problem& p) {
    return call.policy().allow_tf32 && p.type() == DType::Float32 ? "; tf32 allowed" : "";
  }
  // Which strides are 1 decides what can run, and how fast.
  static ShapeClass shape_class(const OpCall&, const Problem& p) {
    return {number_of(p.types), size_class(p.batch),   size_class(p.m), size_class(p.n),
            size_class(p.k),    p.a.col == 1,          p.b.col == 1,    p.c.col == 1,
            p.a.batch == 0,     p.end.self.has_value()};
  }
  static std::string shape_text(const ShapeClass& s) {
    return fmt::format("{} {}x{}x{}x{} {}{}{}{}{}", text_of(types_of(s[0])), s[1], s[2], s[3], s[4],
                       s[5] ? "a" : "A", s[6] ? "b" : "B", s[7] ? "c" : "C", s[8] ? "1" : "",
                       s[9] ? "+" : "");
  }
  static Scratch redirect(const OpCall& call, Problem& p) {
    Scratch memory(
        call.scratch(static_cast<uint64_t>(p.batch * p.m * p.n * size_of(p.types.result))));
    p.c = {memory.address(), p.m * p.n, p.c.col == 1 ? p.n : 1, p.c.col == 1 ? 1 : p.m};
    return memory;
  }
  static std::vector<ResultPart> results(const OpCall&, const Problem& p) {
    return {{0, p.batch * p.m * p.n, p.types.result, p.k}};
  }
};
using Algorithms = AlgorithmList<Problem, MatmulTraits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(  // leaked: threads may run while the process ends
      "matmul", matmul_operators(),
      {&kEndApart, &kInt8Dots, &kInt8Floats, &kDots, &kColumns, &kTiles, &kTilesInPieces,
       &kSplitKGpu, &kSplitKCpu, &kSkinny, &kInPlace, &kPacked, &kLargeTiles, &kTinyTiles,
       &kSmallTiles, &kGeneralCpu, &kGeneralGpu});
  return list;
}

MemoryRange memory_of(const Problem& p, DType type, const Matrix& matrix, int64_t rows,
                      int64_t columns) {
  if (p.batch * rows * columns == 0) return nullptr;
  const Dims sizes{p.batch, rows, columns};
  const Extent e = extent(sizes, Dims{matrix.batch, matrix.row, matrix.col});
  const int64_t item = size_of(type);
  return {matrix.address, e.low * item, e.high * item};
}

}  // namespace

// The stride of a dimension of size 1 may be set to any value, which decides many cases.
Problem normalised(Problem p) {
  const auto free_strides = [&p] {
    if (p.n == 1) p.c.col = 1;
    if (p.m == 1) p.c.row = p.n;
    if (p.k == 1 && p.a.row != 1) p.a.col = 1;
    if (p.k == 1 && p.b.col != 1) p.b.row = 1;
    if (p.n == 1 && p.b.row != 1) p.b.col = 1;
  };
  free_strides();
  const bool column = p.n == 1 && p.m > 1 && p.c.row == 1;
  if (column || (p.c.col != 1 && p.c.row == 1)) {
    std::swap(p.m, p.n);
    p.a = transposed(std::exchange(p.b, transposed(p.a)));
    p.c = transposed(p.c);
    p.types = transposed(p.types);
    p.end = transposed(p.end);
    free_strides();
  }
  return p;
}

void run_matmul(const OpCall& call, const Problem& problem) {
  if (problem.batch == 0 || problem.m == 0 || problem.n == 0) return;
  if (is_complex(problem.types.a)) return run_complex_matmul(call, problem);
  algorithms().run(call, normalised(problem));
}

const AlgorithmFamily& matmul_algorithms() { return algorithms().family(); }

bool has_units_for(const OpCall& call, const Problem& problem) {
  const Algorithm* const first = algorithms().by_rule(call, normalised(problem));
  return first != nullptr && first->provider != &kPortable;
}

MatmulParams matmul_params(const Problem& p) {
  const Matrix self = p.end.self.value_or(Matrix{});
  const Matrix scales = p.end.scales ? p.end.scales->at : Matrix{};
  return {p.m,
          p.n,
          p.k,
          p.a.batch,
          p.a.row,
          p.a.col,
          p.b.batch,
          p.b.row,
          p.b.col,
          p.c.batch,
          p.c.row,
          p.c.col,
          self.batch,
          self.row,
          self.col,
          scales.row,
          scales.col,
          scalar_bits(p.end.alpha, p.types.result),
          scalar_bits(p.end.beta, p.types.result)};
}

namespace {

Defines end_defines(const Problem& p, bool of_accumulator) {
  const Types& types = p.types;
  Defines d;
  d.type(define::RESULT, types.result).type(define::SELF_TYPE, types.self);
  if (p.end.scales) d.type(define::SCALE_TYPE, p.end.scales->type);
  if (p.end.formula != nullptr) {
    elementwise::define_formula(d, *p.end.formula, types.result);
    d.type(define::COMPUTE, compute_type(types.of_sums())).set(define::UNSIGNED, false);
    if (!of_accumulator) d.set(define::FLOATING, true);
  }
  return d;
}

}  // namespace

Defines float_defines(const Problem& p) {
  return end_defines(p, false).type(define::B_TYPE, p.types.b);
}

Defines matmul_defines(const Problem& p) {
  return sum_defines(p).type(define::A_TYPE, p.types.a).type(define::B_TYPE, p.types.b);
}

Defines sum_defines(const Problem& p) {
  const DType sums = p.types.of_sums();
  Defines d = end_defines(p, true);
  d.type(define::TYPE, sums)
      .set(define::FLOATING, is_floating(sums))
      .set(define::WIDE, is_integral(sums, false) && size_of(sums) == 8);
  return d.set(define::ADD_SELF, p.end.self.has_value());
}

bool is_product_of(const Types& t) {
  if (t.alike()) return true;
  const auto is_half = [](DType type) { return size_of(type) == 2 && is_floating(type); };
  if (t.a == DType::Int8 && t.b == DType::Int8) return t.result == DType::Int32;
  const DType sums = t.of_sums();
  const auto is_factor = [&](DType type) { return type == sums || type == DType::Int8; };
  const auto is_result = [&](DType type) {
    return type == sums || (type == DType::Float32 && is_half(sums));
  };
  return is_floating(sums) && is_factor(t.a) && is_factor(t.b) && is_result(t.result) &&
         is_result(t.self);
}

const char* refuse_other_types(const Problem& p) {
  return p.types.alike() ? nullptr : "the matrices have different types";
}
const char* refuse_more(const Problem& p) {
  return p.end.has_more() ? "its kernel knows no scales and formulas" : nullptr;
}
const char* refuse_for_units(const Problem& p, int64_t least_rows, int64_t most_pieces) {
  if (const char* reason = refuse_more(p)) return reason;
  if (p.c.col != 1) return "the columns of the result are not neighbours";
  if (p.k == 0) return "nothing to sum";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max(), kLeastColumns = 64;
  if (std::max({p.m, p.n, p.k}) > kMost - 256 ||
      divide_up(p.m, least_rows) * divide_up(p.n, kLeastColumns) > kMost / (most_pieces * p.batch))
    return "the sizes need 64 bits";
  return nullptr;
}
const char* refuse_non_floats(const Problem& p) {
  return compute_type(p.types.of_sums()) == DType::Float32 ? nullptr : "not computed in float32";
}

MemoryRange memory_of_a(const Problem& p) { return memory_of(p, p.types.a, p.a, p.m, p.k); }
MemoryRange memory_of_b(const Problem& p) { return memory_of(p, p.types.b, p.b, p.k, p.n); }
MemoryRange memory_of_c(const Problem& p) { return memory_of(p, p.types.result, p.c, p.m, p.n); }
MemoryRange memory_of_self(const Problem& p) {
  return p.end.self ? memory_of(p, p.types.self, *p.end.self, p.m, p.n) : nullptr;
}
MemoryRange memory_of_scales(const Problem& p) {
  return p.end.scales ? memory_of(p, p.end.scales->type, p.end.scales->at, p.m, p.n) : nullptr;
}
std::optional<MemoryRange> given_scales(const Problem& p) {
  return p.end.scales ? std::optional(memory_of_scales(p)) : std::nullopt;
}

}  // namespace ocltensor::opencl::matmul
