// The ordered list of algorithms for matrix products, and the code that they share.
#include <utility>

#include "call/scalar_bits.h"
#include "kernels/defines.h"
#include "matmul.h"

namespace ocltensor::opencl::matmul {
namespace {

struct MatmulTraits {
  static std::string describe(const OpCall&, const Problem& p) {
    return fmt::format("matmul {} {} x {} x {} x {}", name(p.dtype), p.batch, p.m, p.n, p.k);
  }
  static std::string notes(const OpCall& call, const Problem& p) {
    return call.policy().allow_tf32 && p.dtype == DType::Float32 ? "; tf32 allowed" : "";
  }
  // Which strides are 1 decides what can run, and how fast.
  static ShapeClass shape_class(const OpCall&, const Problem& p) {
    return {static_cast<int64_t>(p.dtype),
            size_class(p.batch),
            size_class(p.m),
            size_class(p.n),
            size_class(p.k),
            p.a.col == 1,
            p.b.col == 1,
            p.c.col == 1,
            p.a.batch == 0,
            p.self.has_value()};
  }
  static std::string shape_text(const ShapeClass& s) {
    return fmt::format("{} {}x{}x{}x{} {}{}{}{}{}", name(static_cast<DType>(s[0])), s[1], s[2],
                       s[3], s[4], s[5] ? "a" : "A", s[6] ? "b" : "B", s[7] ? "c" : "C",
                       s[8] ? "1" : "", s[9] ? "+" : "");
  }
  static Scratch redirect(const OpCall& call, Problem& p) {
    Scratch memory(call.scratch(static_cast<uint64_t>(p.batch * p.m * p.n * size_of(p.dtype))));
    p.c = {memory.address(), p.m * p.n, p.c.col == 1 ? p.n : 1, p.c.col == 1 ? 1 : p.m};
    return memory;
  }
  static std::vector<ResultPart> results(const OpCall&, const Problem& p) {
    return {{0, p.batch * p.m * p.n, p.dtype, p.k}};
  }
};
using Algorithms = AlgorithmList<Problem, MatmulTraits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(  // leaked: threads may run while the process ends
      "matmul", matmul_operators(),
      {&kDots, &kColumns, &kTiles, &kTilesInPieces, &kSplitKGpu, &kSplitKCpu, &kSkinny, &kInPlace,
       &kPacked, &kLargeTiles, &kTinyTiles, &kSmallTiles, &kGeneralCpu, &kGeneralGpu});
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
    if (p.self) p.self = transposed(*p.self);
    free_strides();
  }
  return p;
}

void run_matmul(const OpCall& call, const Problem& problem) {
  if (problem.batch == 0 || problem.m == 0 || problem.n == 0) return;
  if (is_complex(problem.dtype)) return run_complex_matmul(call, problem);
  algorithms().run(call, normalised(problem));
}

const AlgorithmFamily& matmul_algorithms() { return algorithms().family(); }

MatmulParams matmul_params(const Problem& p) {
  const Matrix self = p.self.value_or(Matrix{});
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
          scalar_bits(p.alpha, p.dtype),
          scalar_bits(p.beta, p.dtype)};
}

Defines matmul_defines(const Problem& p) {
  Defines d;
  d.type(define::TYPE, p.dtype)
      .set(define::FLOATING, is_floating(p.dtype))
      .set(define::WIDE, is_integral(p.dtype, false) && size_of(p.dtype) == 8);
  d.set(define::HAS_S, p.self.has_value());
  return d;
}

MemoryRange memory_of_a(const Problem& p) { return memory_of(p, p.dtype, p.a, p.m, p.k); }
MemoryRange memory_of_b(const Problem& p) { return memory_of(p, p.dtype, p.b, p.k, p.n); }
MemoryRange memory_of_c(const Problem& p) { return memory_of(p, p.result_type(), p.c, p.m, p.n); }
MemoryRange memory_of_self(const Problem& p) {
  return p.self ? memory_of(p, p.dtype, *p.self, p.m, p.n) : nullptr;
}

}  // namespace ocltensor::opencl::matmul
