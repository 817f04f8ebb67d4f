// Products with few results and long sums (dot): K is cut into pieces that run as a batch, and the
// partial results are summed by another product, in a fixed order.
#include <algorithm>

#include "matmul.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl {
namespace {

// GPUs need thousands of work-items, each of which has 4 of the results (general_elements.cl).
int64_t pieces_of(const OpCall& call, const MatmulProblem& p) {
  if (call.caps().style == KernelStyle::Rows) return std::min<int64_t>(16, p.k / 4096);
  const int64_t wanted = 4 * static_cast<int64_t>(call.caps().compute_units) / divide_up(p.n, 256);
  return std::min<int64_t>({wanted, 256, p.k / 128});
}

// Partial results of 16-bit types are rounded to that type, which has to be permitted.
const char* refuse_rounding(const OpCall& call, DType type) {
  if (compute_type(type) == type) return nullptr;
  const ReducedSums& allowed = type == DType::BFloat16 ? call.policy().bf16 : call.policy().fp16;
  if (!allowed.reduced) return "partial results would be rounded: reduced precision is not allowed";
  return allowed.split ? nullptr : "split-K is not allowed";
}

const char* refuse(const OpCall& call, const MatmulProblem& p) {
  if (const char* reason = refuse_rounding(call, p.dtype)) return reason;
  if (p.batch != 1) return "a batch";
  if (p.m != 1 || p.c.col != 1) return "more than one row of results";
  if (call.caps().style == KernelStyle::Rows && p.n > 64) return "enough results to work on";
  if (pieces_of(call, p) < 2) return "the sums are short";
  return nullptr;
}

void run(const OpCall& call, const MatmulProblem& p) {
  const int64_t pieces = pieces_of(call, p);
  const int64_t length = p.k / pieces;
  const int64_t rest = p.k - length * pieces;
  const int64_t parts = pieces + (rest > 0);
  const int64_t item = size_of(p.dtype);
  const Scratch partial = call.scratch(static_cast<uint64_t>(parts * p.n * item));
  const Scratch ones = call.scratch(static_cast<uint64_t>(parts * item));
  fill_tensor(call, LocalTensor(ones.address(), p.dtype, Dims{parts}), 1);

  MatmulProblem piece = p;
  piece.self.reset();
  piece.alpha = 1;
  piece.batch = pieces;
  piece.k = length;
  piece.a.batch = length * p.a.col;
  piece.b.batch = length * p.b.row;
  piece.c = {partial.address(), p.n, p.n, 1};
  run_matmul(call, piece);
  if (rest > 0) {
    piece.batch = 1;
    piece.k = rest;
    piece.a.address += static_cast<uint64_t>(pieces * piece.a.batch * item);
    piece.b.address += static_cast<uint64_t>(pieces * piece.b.batch * item);
    piece.c.address += static_cast<uint64_t>(pieces * p.n * item);
    run_matmul(call, piece);
  }
  MatmulProblem sum = p;
  sum.k = parts;
  sum.a = {ones.address(), 0, parts, 1};
  sum.b = {partial.address(), 0, p.n, 1};
  run_matmul(call, sum);
}

}  // namespace

const MatmulImplementation kMatmulSplit{{"matmul.split", "split sums"}, refuse, run};

}  // namespace ocltensor::opencl
