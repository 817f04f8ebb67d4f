// Products of bf16 by pairs: A is packed, work-items pack their parts of B and sweep tiles.
#include "product.h"

#include "call/proofs.h"
#include "kernels/x86_avx512/matmul.h"
#include "x86_avx512/provider.h"

namespace ocltensor::opencl::x86_avx512 {
namespace {

using matmul::Problem;
using matmul::TilePlan;

constexpr int64_t kTileRows = 8;     // product.cl
constexpr int64_t kPanel = 32;       // tile_rows.h
constexpr int64_t kPairBlock = 256;  // bf16_pairs.h
constexpr uint64_t kPackedBytes = 8 * kPairBlock * kPanel * sizeof(uint32_t);
constexpr int64_t kSkinny = 4;
constexpr int64_t kShortSum = 16;

int64_t pairs(const Problem& p) { return divide_up(p.k, 2); }

Defines defines(DType out) {
  Defines d;
  d.type(define::TYPE, DType::BFloat16).type(define::OUT, out);
  return d;
}

bool is_proven(const OpCall& call) {
  static auto& proofs = *new Proofs<1>;  // leaked: streams may end after static objects
  return proofs.hold(
      call, 0, kernel_sources::x86_avx512_matmul_product, [] { return defines(DType::Float32); },
      wrong_product, nullptr);
}

Planned<TilePlan> plan(const OpCall& call, const Problem& p) {
  if (p.dtype != DType::BFloat16) return "not bfloat16";
  if (p.c.col != 1) return "the columns of the result are not neighbours";
  if (p.k == 0) return "nothing to sum";
  if (call.caps().local_memory < kPackedBytes) return "less than 256 KiB of local memory";
  if (!is_proven(call)) return "its proof failed";
  return matmul::plan_tiles(p, pairs(p), call.caps().compute_units);
}

const char* pass_over(const OpCall&, const Problem& p) {
  if (p.m <= kSkinny) return "few rows";
  if (p.k < kShortSum) return "short sums";
  return nullptr;
}

void multiply(const OpCall& call, const Problem& p, const TilePlan& plan, DType out) {
  const int64_t batch = p.a.batch == 0 ? 1 : p.batch;
  const int64_t panel_batch = divide_up(p.m, kTileRows) * kTileRows * pairs(p);
  const Scratch panels =
      call.scratch(static_cast<uint64_t>(batch * panel_batch) * sizeof(uint32_t));
  const MatmulParams params = matmul::matmul_params(p);
  call.launch(
          kernels::x86_avx512::matmul::product_pack::product_pack, Defines(),
          {.panel = panels, .a = matmul::memory_of_a(p), .p = params, .panel_batch = panel_batch})
      .run({divide_up(p.m, kTileRows), divide_up(pairs(p), 256), batch}, {1, 1, 1});

  Problem of_result = p;
  of_result.dtype = out;
  call.launch(kernels::x86_avx512::matmul::product::product, defines(out),
              {.c = matmul::memory_of_c(of_result),
               .a = panels,
               .b = matmul::memory_of_b(p),
               .s = matmul::memory_of_self(p),
               .p = params,
               .a_batch = batch == 1 ? 0 : panel_batch,
               .rows = plan.rows,
               .panels = plan.panels,
               .add_s = p.self.has_value()})
      .run({divide_up(p.n, kPanel * plan.panels), divide_up(p.m, plan.rows), p.batch}, {1, 1, 1});
}

}  // namespace

// Several blocks of k are summed in float scratch memory and rounded once.
void run_product(const OpCall& call, const Problem& p, const TilePlan& plan) {
  if (pairs(p) <= kPairBlock) return multiply(call, p, plan, p.dtype);
  const Dims sizes{p.batch, p.m, p.n};
  const Scratch sums = call.scratch(static_cast<uint64_t>(numel(sizes)) * sizeof(float));
  Problem wide = p;
  wide.c = {sums.address(), p.m * p.n, p.n, 1};
  multiply(call, wide, plan, DType::Float32);
  copy_tensor(call, LocalTensor(p.c.address, p.dtype, sizes, {p.c.batch, p.c.row, p.c.col}),
              LocalTensor(sums.address(), DType::Float32, sizes));
}

constinit const AlgorithmFor<Problem> kProduct({.id = "matmul.bf16_pairs",
                                                .description = "AVX-512's products of bf16 pairs",
                                                .style = DeviceStyle::Cpu,
                                                .provider = &kX86Avx512},
                                               Steps<plan, run_product>(), pass_over);

}  // namespace ocltensor::opencl::x86_avx512
