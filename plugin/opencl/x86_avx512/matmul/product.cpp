// Products of bf16 by pairs: A is packed, work-items pack their parts of B and sweep tiles.
#include "product.h"

#include "call/proofs.h"
#include "kernels/x86_avx512/matmul.h"
#include "x86_avx512/provider.h"

namespace ocltensor::opencl::x86_avx512 {
namespace {

using matmul::Problem;
using matmul::TilePlan;

constexpr int64_t kSkinny = 4;
constexpr int64_t kShortSum = 16;

int64_t pairs(const Problem& p) { return divide_up(p.k, 2); }

bool is_proven(const OpCall& call) {
  static constexpr char kOnly = 0;       // there is one kernel
  static auto& proofs = *new Proofs<1>;  // leaked: streams may end after static objects
  static constexpr ProofTest kTest{kernel_sources::x86_avx512_matmul_product, wrong_product};
  return proofs.hold(
      call, 0, kTest, [] { return matmul::tile_defines({.types = DType::BFloat16}); }, &kOnly);
}

Planned<TilePlan> plan(const OpCall& call, const Problem& p, const Configuration& c) {
  if (p.types.a != DType::BFloat16 || p.types.b != DType::BFloat16) return "not bfloat16";
  auto tiles = matmul::plan_tiles(call, p, pairs(p), c);
  if (tiles.reason() == nullptr && !is_proven(call)) return "its proof failed";
  return tiles;
}

Configurations space(const OpCall& call, const Problem& p) {
  return matmul::tile_space(call, p, pairs(p));
}

const char* pass_over(const OpCall&, const Problem& p) {
  if (p.m <= kSkinny) return "few rows";
  if (p.k < kShortSum) return "short sums";
  return nullptr;
}

}  // namespace

void run_product(const OpCall& call, const Problem& p, const TilePlan& plan) {
  const auto multiply = [&](const Problem& q) {
    matmul::multiply_packed(call, q, plan, pairs(p),
                            kernels::x86_avx512::matmul::product_pack::product_pack, Defines(),
                            kernels::x86_avx512::matmul::product::product);
  };
  matmul::round_once(call, p, matmul::takes_several_blocks(pairs(p)), multiply);
}

constinit const AlgorithmFor<Problem> kProduct({.id = "matmul.bf16_pairs",
                                                .description = "AVX-512's products of bf16 pairs",
                                                .style = DeviceStyle::Cpu,
                                                .provider = &kX86Avx512,
                                                .parameters = matmul::kTilePlanParameters},
                                               Steps<plan, run_product, space>(), pass_over);

}  // namespace ocltensor::opencl::x86_avx512
