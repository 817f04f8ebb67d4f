// Matrix products on Hopper's matrix units: the kernel's launch, and the products of 16-bit types
// and TF32, whose operands are read in place where the copy engine can.
#include "product.h"

#include <algorithm>

#include "call/proofs.h"
#include "kernels/nvidia_hopper/matmul.h"
#include "nvidia_hopper/provider.h"
#include "ops/matmul/layer_forms.h"
#include "ops/matmul/split_k_sum.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

using Kind = HopperKind;
using Operand = HopperOperand;
using Variant = HopperProduct;

// A network's layers in all forms, in tiles as wide. Cut sums are left out: few layers have them.
void report_likely(const OpCall&, const void* what, const ReportProgram& report) {
  Variant v = *static_cast<const Variant*>(what);
  v.pieces = 1;
  for (const matmul::LayerForm& f : matmul::kLayerForms) {
    if (v.kind == Kind::Tf32 && !(f.a_along_k && f.b_along_k)) continue;
    v.a_along_k = f.a_along_k, v.b_along_k = f.b_along_k, v.self = f.self;
    report(kernel_sources::nvidia_hopper_matmul_product, v.defines());
  }
}

constexpr int64_t kItems = 288;         // ITEMS of product.cl
constexpr int64_t kMapBytes = 2 * 128;  // of a work-group: two tensor maps

Kind kind_of(DType type) {
  return type == DType::Float16 ? Kind::Half : type == DType::BFloat16 ? Kind::BFloat : Kind::Tf32;
}

// For 16-bit types and TF32: operands that the copy engine cannot read in place are copied along k
// first.
Variant direct_variant(const OpCall& call, const matmul::Problem& p) {
  Variant v{kind_of(p.type()), 64, true, true, p.end.self.has_value()};
  const bool needs_k = v.kind == Kind::Tf32;
  const Operand a = operand_a(p), b = operand_b(p);
  v.a_along_k = !matmul::has_vector_lines(p, a, needs_k) || a.along_k();
  v.b_along_k = !matmul::has_vector_lines(p, b, needs_k) || b.along_k();
  choose_tiles(call, p, v);
  return v;
}

Planned<Variant> plan_direct(const OpCall& call, const matmul::Problem& p) {
  if (const char* reason = refuse_product(p)) return reason;
  const bool half = p.type() == DType::Float16 || p.type() == DType::BFloat16;
  if (!half && p.type() != DType::Float32) return "not a type of the matrix units";
  if (!half && !call.policy().allow_tf32) return "TF32 is not allowed";
  const Variant v = direct_variant(call, p);
  if (!is_product_proven(call, v)) return kNotProven;
  return v;
}
// A few rows are bound by memory, which many small work-groups read faster.
const char* pass_over_direct(const OpCall&, const matmul::Problem& p) {
  if (p.m <= 4) return "a few rows";
  return p.k < 16 || p.n < 16 ? "too little to multiply" : nullptr;
}

// Whether the result is stored, and self is loaded, by vectors. Float results are stored either
// way.
bool is_aligned(const matmul::Problem& p, const Variant& v) {
  const int64_t item = size_of(p.type());
  if (v.pieces > 1) return true;
  if (const auto& s = p.end.self)
    if (s->address % (2 * item) != 0 || s->col != 1 || (p.n | s->row | s->batch) % 2 != 0)
      return false;
  if (v.kind == Kind::Tf32 || v.bf16_parts()) return true;
  return p.c.address % 16 == 0 && p.c.row % 8 == 0 && p.c.batch % 8 == 0;
}

}  // namespace

const char* refuse_product(const matmul::Problem& p) {
  if (const char* reason = matmul::refuse_other_types(p)) return reason;
  return matmul::refuse_for_units(p, kHopperRows, kMostPieces);
}

void choose_tiles(const OpCall& call, const matmul::Problem& p, Variant& v) {
  const HopperTiles tiles = choose_hopper_tiles({.batch = p.batch,
                                                 .m = p.m,
                                                 .n = p.n,
                                                 .steps = v.steps(p.k),
                                                 .units = call.caps().compute_units,
                                                 .bf16_parts = v.bf16_parts(),
                                                 .has_192_columns = true});
  v.columns = tiles.columns;
  v.pieces = tiles.pieces;
  v.aligned = is_aligned(p, v);
}

void enqueue_product(const OpCall& call, const matmul::Problem& p, const Variant& v,
                     const Operand& a, const Operand& b, const matmul::Guard& guard) {
  const int64_t tiles =
      v.pieces * p.batch * divide_up(p.m, kHopperRows) * divide_up(p.n, v.columns);
  const int64_t groups = std::min<int64_t>(tiles, call.caps().compute_units);
  const Scratch maps = call.scratch(static_cast<uint64_t>(groups * kMapBytes));
  const int64_t sums_bytes = v.pieces == 1 ? 1 : v.pieces * p.batch * p.m * p.n * 4;
  const Scratch sums = call.scratch(static_cast<uint64_t>(sums_bytes));
  matmul::Problem q = p;
  q.a = {a.address, a.batch, a.line, a.step};
  q.b = {b.address, b.batch, b.step, b.line};
  if (v.pieces > 1) q.c = {sums.address(), p.m * p.n, p.n, 1};
  call.launch(kernels::nvidia_hopper::matmul::product::matmul_hopper, v.defines(),
              {.c = v.pieces > 1 ? MemoryRange(sums) : matmul::memory_of_c(p),
               .a = MemoryRange(a.address, 0, 1),
               .b = MemoryRange(b.address, 0, 1),
               .s = matmul::memory_of_self(p),
               .word = guard.memory(),
               .stop = guard.value,
               .maps = maps,
               .matrices = static_cast<int32_t>(p.batch),
               .pieces = static_cast<int32_t>(v.pieces),
               .piece_steps = static_cast<int32_t>(v.piece_steps(p.k)),
               .a_matrices = static_cast<int32_t>(a.matrices),
               .b_matrices = static_cast<int32_t>(b.matrices),
               .p = matmul::matmul_params(q)})
      .run({groups * kItems, 1, 1}, {kItems, 1, 1});
  if (v.pieces > 1)
    matmul::sum_pieces(call, matmul::results_of(p), v.pieces, sums.address(), guard);
}

bool is_product_proven(const OpCall& call, const Variant& v) {
  static auto& proofs =
      *new Proofs<kHopperProducts>;  // leaked: streams may end after static objects
  static constexpr ProofTest kTest{kernel_sources::nvidia_hopper_matmul_product,
                                   wrong_hopper_product, report_likely};
  return proofs.hold(
      call, v.index(), kTest, [&] { return v.defines(); }, &v);
}

void run_product(const OpCall& call, const matmul::Problem& p, const Variant& v) {
  const bool along_k_only = v.kind == Kind::Tf32;
  const matmul::VectorOperand a(call, p, operand_a(p), p.m, along_k_only);
  const matmul::VectorOperand b(call, p, operand_b(p), p.n, along_k_only);
  enqueue_product(call, p, v, a.operand(), b.operand(), {});
}

constinit const AlgorithmFor<matmul::Problem> kProduct(
    {.id = "matmul.hopper", .description = "Hopper's matrix units", .provider = &kNvidiaHopper},
    Steps<plan_direct, run_product>(), pass_over_direct);

}  // namespace ocltensor::opencl::nvidia_hopper
