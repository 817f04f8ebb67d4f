// Products with few results and long sums (dot, weight gradients of small layers): K is cut into
// pieces that run as a batch, and the partial results, seen as one row, are summed by another
// product, in a fixed order.
#include <algorithm>

#include "matmul.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::matmul {
namespace {

constexpr int64_t kTile = 64;  // edge of the tiles that GPUs take for small results

int64_t tiles_of(const Problem& p) {
  return p.batch * divide_up(p.m, kTile) * divide_up(p.n, kTile);
}

// Partial results of 16-bit types are rounded to that type: only where the caller permits it.
const char* refuse_rounding(const OpCall& call, DType type) {
  if (compute_type(type) == type) return nullptr;
  const ReducedSums& allowed = type == DType::BFloat16 ? call.policy().bf16 : call.policy().fp16;
  if (!allowed.reduced) return "partial results would be rounded: reduced precision is not allowed";
  return allowed.split ? nullptr : "split-K is not allowed";
}

const char* refuse_any(const OpCall& call, const Problem& p) {
  if (const char* reason = refuse_other_types(p)) return reason;
  if (const char* reason = refuse_more(p)) return reason;
  if (const char* reason = refuse_rounding(call, p.type())) return reason;
  if (p.batch != 1) return "a batch";
  return p.c.col == 1 ? nullptr : "the columns of the result are not neighbours";
}

// The plan: how many pieces.
constexpr const char* kShort = "the sums are short";
constexpr const char* kEnough = "enough results to work on";

Planned<int64_t> plan_cpu(const OpCall& call, const Problem& p) {
  if (const char* reason = refuse_any(call, p)) return reason;
  if (p.m > 1) return "more than one row of results";
  if (p.n > 64) return kEnough;
  const int64_t pieces = std::min<int64_t>(16, p.k / 4096);
  if (pieces < 2) return kShort;
  return pieces;
}
Planned<int64_t> plan_gpu(const OpCall& call, const Problem& p) {
  if (const char* reason = refuse_any(call, p)) return reason;
  const int64_t units = call.caps().compute_units, tiles = tiles_of(p);
  if (p.m > 1) {
    if (p.c.row != p.n) return "the result is no single row";
    if (p.end.self && (p.end.self->row != p.n || p.end.self->col != 1))
      return "self is no single row";
    if (2 * tiles > units) return kEnough;
  }
  const int64_t pieces = std::min<int64_t>({2 * units / tiles, 256, p.k / 512});
  if (pieces < 2) return kShort;
  return pieces;
}

void run(const OpCall& call, const Problem& p, const int64_t& pieces) {
  const int64_t length = p.k / pieces;
  const int64_t rest = p.k - length * pieces;
  const int64_t sums = pieces + (rest > 0);
  const int64_t item = size_of(p.type());
  const int64_t results = p.m * p.n;
  const Scratch partial = call.scratch(static_cast<uint64_t>(sums * results * item));
  const Scratch ones = call.scratch(static_cast<uint64_t>(sums * item));
  copy::fill_tensor(call, LocalTensor(ones.address(), p.type(), Dims{sums}), 1);

  Problem piece = p;
  piece.end = {};
  piece.batch = pieces;
  piece.k = length;
  piece.a.batch = length * p.a.col;
  piece.b.batch = length * p.b.row;
  piece.c = {partial.address(), results, p.n, 1};
  run_matmul(call, piece);
  if (rest > 0) {
    piece.batch = 1;
    piece.k = rest;
    piece.a.address += static_cast<uint64_t>(pieces * piece.a.batch * item);
    piece.b.address += static_cast<uint64_t>(pieces * piece.b.batch * item);
    piece.c.address += static_cast<uint64_t>(pieces * results * item);
    run_matmul(call, piece);
  }
  Problem sum = p;
  sum.m = 1;
  sum.n = results;
  sum.k = sums;
  sum.a = {ones.address(), 0, sums, 1};
  sum.b = {partial.address(), 0, results, 1};
  sum.c.row = results;
  if (sum.end.self && p.m > 1) sum.end.self->row = results;
  run_matmul(call, sum);
}

}  // namespace

constinit const AlgorithmFor<Problem> kSplitKCpu({.id = "matmul.split_k_cpu",
                                                  .description = "a long dot product in pieces",
                                                  .style = DeviceStyle::Cpu},
                                                 Steps<plan_cpu, run>());
constinit const AlgorithmFor<Problem> kSplitKGpu({.id = "matmul.split_k_gpu",
                                                  .description = "few results, k in pieces",
                                                  .style = DeviceStyle::Gpu},
                                                 Steps<plan_gpu, run>());

}  // namespace ocltensor::opencl::matmul
