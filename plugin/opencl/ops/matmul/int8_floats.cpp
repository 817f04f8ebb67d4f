// Products of int8 as products of float32 by whatever multiplies those best: sums up to 2^24 are
// exact in any order, so k is cut into pieces, whose sums are added as integers.
#include <algorithm>

#include "kernels/matmul.h"
#include "matmul.h"

namespace ocltensor::opencl::matmul {
namespace {

constexpr int64_t kExact = int64_t{1} << 24, kLargest = 128;
constexpr int64_t kPiece = kExact / (kLargest * kLargest);  // of k
constexpr int64_t kItems = 64;

// A piece of a factor as float32, in the order that it has in memory.
Matrix floats_of(const OpCall& call, const Scratch& to, const Matrix& from, int64_t rows,
                 int64_t columns) {
  const Matrix floats =
      from.row == 1 ? Matrix{to.address(), 0, 1, rows} : Matrix{to.address(), 0, columns, 1};
  const Dims sizes{rows, columns};
  copy_tensor(call,
              LocalTensor(floats.address, DType::Float32, sizes, Dims{floats.row, floats.col}),
              LocalTensor(from.address, DType::Int8, sizes, Dims{from.row, from.col}));
  return floats;
}

const char* plan(const OpCall&, const Problem& p) {
  if (!p.is_of_bytes()) return "not int8";
  if (p.batch != 1) return "a batch";
  return p.types.result == DType::Int32 ? nullptr : "the sums are not kept";
}

void run(const OpCall& call, const Problem& p) {
  const auto scratch = [&call](int64_t count) {
    return call.scratch(static_cast<uint64_t>(std::max<int64_t>(count, 1)) * sizeof(float));
  };
  const int64_t most = std::min(p.k, kPiece);
  const Scratch a = scratch(p.m * most), b = scratch(most * p.n), sums = scratch(p.m * p.n);
  int64_t first = 0;
  do {
    const int64_t length = std::min(p.k - first, kPiece);
    Matrix left = p.a, right = p.b;
    left.address += static_cast<uint64_t>(first * left.col);
    right.address += static_cast<uint64_t>(first * right.row);
    Problem piece{DType::Float32, 1, p.m, p.n, length, {}, {}, {}};
    if (length > 0) {
      piece.a = floats_of(call, a, left, p.m, length);
      piece.b = floats_of(call, b, right, length, p.n);
    }
    piece.c = {sums.address(), p.m * p.n, p.n, 1};
    run_matmul(call, piece);
    call.launch(kernels::matmul::int8_floats::matmul_int8_add,
                Defines().set(define::ADDS, first > 0),
                {.c = memory_of_c(p), .sums = sums, .p = matmul_params(p)})
        .run({divide_up(p.m * p.n, kItems) * kItems, 1, 1}, {kItems, 1, 1});
    first += kPiece;
  } while (first < p.k);
}

}  // namespace

constinit const AlgorithmFor<Problem> kInt8Floats(
    {.id = "matmul.int8_floats", .description = "int8 as float32, exact in pieces of k"},
    Steps<plan, run>());

}  // namespace ocltensor::opencl::matmul
