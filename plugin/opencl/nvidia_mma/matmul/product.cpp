// Matrix products on matrix units by mma.sync: the kernel's launch, the choice of its form, and the
// products of 16-bit types and TF32.
#include "product.h"

#include "call/proofs.h"
#include "kernels/nvidia_mma/matmul.h"
#include "nvidia_hopper/provider.h"
#include "nvidia_mma/provider.h"
#include "ops/matmul/layer_forms.h"
#include "ops/matmul/split_k_sum.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

using matmul::Operand;
using matmul::Problem;

constexpr const char* kNotProven = "the kernels failed their tests on this driver";

// A network's layers in all forms, in tiles of the same size.
void report_likely(const OpCall& call, const void* what, const ReportProgram& report) {
  MmaProduct v = *static_cast<const MmaProduct*>(what);
  v.pieces = 1;
  for (const matmul::LayerForm& f : matmul::kLayerForms) {
    v.a_along_k = f.a_along_k, v.b_along_k = f.b_along_k, v.self = f.self;
    report(kernel_sources::nvidia_mma_matmul_product, v.defines(call.caps()));
  }
}

bool is_proven(const OpCall& call, const MmaProduct& v) {
  static auto& proofs = *new Proofs<kMmaProducts>;  // leaked: streams may end after static objects
  static constexpr ProofTest kTest{kernel_sources::nvidia_mma_matmul_product, wrong_mma_product,
                                   report_likely};
  return proofs.hold(
      call, v.index(), kTest, [&] { return v.defines(call.caps()); }, &v);
}

// Matrices of bytes cannot be turned as they are loaded.
bool is_along_k_only(MmaKind kind) { return kind == MmaKind::Int8; }

// Whether lines of an operand run along k once it can be read: what cannot is copied along k.
bool reads_along_k(const Problem& p, const Operand& o, MmaKind kind) {
  return o.along_k() || !matmul::has_vector_lines(p, o, is_along_k_only(kind));
}

Planned<MmaProduct> plan_direct(const OpCall& call, const Problem& p) {
  if (const char* reason = refuse_product(call, p)) return reason;
  if (p.types.a != p.types.b) return "the factors have different types";
  Planned<MmaKind> kind = kind_of(call, p.type());
  return kind.reason() != nullptr ? kind.reason() : proven_product(call, p, kind.plan());
}

// A few rows are bound by memory, which many small work-groups read faster; and so are copies.
const char* pass_over_direct(const OpCall& call, const Problem& p) {
  // Hopper's kernels have results of the factors' type alone.
  if (p.types.alike())
    if (const char* reason = pass_over_provider(call)) return reason;
  constexpr int64_t kWorthACopy = 64;
  if (p.m <= 4) return "a few rows";
  if (p.k < 16 || p.n < 16) return "too little to multiply";
  const auto copied = [&p](const Operand& o) { return !matmul::has_vector_lines(p, o, false); };
  if ((p.m < kWorthACopy && copied(operand_b(p))) || (p.n < kWorthACopy && copied(operand_a(p))))
    return "copying an operand would take longer than it saves";
  return nullptr;
}

int64_t most_pieces(const OpCall& call, DType type) {
  if (type == DType::Float32 || type == DType::Int8) return kMostPieces;
  const ReducedSums& sums = type == DType::BFloat16 ? call.policy().bf16 : call.policy().fp16;
  return sums.split ? kMostPieces : 1;
}

}  // namespace

Defines tile_defines(const Capabilities& caps, MmaKind kind, size_t tile, bool a_along_k,
                     bool b_along_k) {
  const MmaTile& t = kMmaTiles[tile];
  const int64_t parts = kind == MmaKind::Tf32 ? 1 : kind == MmaKind::Tf32x3 ? 2 : 0;
  Defines d;
  d.type(define::TYPE, type_of(kind)).set(define::TF32_PARTS, parts);
  d.set(define::GENERATION, generation(caps))
      .set(define::EMULATED, nvidia::facts(caps).emulated_mma);
  d.set(define::BM, t.rows).set(define::BN, t.columns);
  d.set(define::WM, t.warp_rows).set(define::WN, t.warp_columns);
  d.set(define::LINE_BYTES, t.line_bytes).set(define::STAGES, t.buffers(generation(caps)));
  d.set(define::AHEAD, t.ahead);
  return d.set(define::A_ALONG_K, a_along_k).set(define::B_ALONG_K, b_along_k);
}

Defines MmaProduct::defines(const Capabilities& caps) const {
  Defines d = tile_defines(caps, kind, tile, a_along_k, b_along_k);
  d.type(define::SELF_TYPE, float_self ? DType::Float32 : type());
  d.set(define::ADD_SELF, self && pieces == 1).set(define::PARTIAL, pieces > 1);
  d.set(define::FLOAT_RESULT, float_result);
  return d.set(define::GUARDED, guarded()).set(define::GROUPED, static_cast<int64_t>(parts));
}

Planned<MmaKind> kind_of(const OpCall& call, DType type) {
  const bool has_wide = generation(call.caps()) >= 80;
  switch (type) {
    case DType::Float16: return MmaKind::Half;
    case DType::BFloat16:
      if (!has_wide) return "bfloat16 needs compute capability 8.0";
      return MmaKind::BFloat;
    case DType::Float32:
      if (!call.policy().allow_tf32) return "TF32 is not allowed";
      if (!has_wide) return "TF32 needs compute capability 8.0";
      return MmaKind::Tf32;
    default: return "not a type of the matrix units";
  }
}

const char* refuse_product(const OpCall& call, const Problem& p) {
  constexpr int64_t kLeastRows = 16;  // of a tile
  if (const char* reason = matmul::refuse_for_units(p, kLeastRows, kMostPieces)) return reason;
  return call.caps().max_work_group_size < 256 ? "work-groups are too small" : nullptr;
}

Planned<MmaProduct> proven_product(const OpCall& call, const Problem& p, MmaKind kind,
                                   matmul::Parts parts) {
  MmaProduct v{kind,
               0,
               reads_along_k(p, operand_a(p), kind),
               reads_along_k(p, operand_b(p), kind),
               p.end.self.has_value(),
               1,
               parts,
               p.types.result != p.type() && !p.is_of_bytes(),
               p.end.self && p.types.self != p.type()};
  const int64_t pieces = parts == matmul::Parts::Of1 ? most_pieces(call, p.type()) : 1;
  uint32_t usable = usable_tiles(kind, generation(call.caps()), most_local_memory(call.caps()));
  for (; usable != 0; usable &= ~(1u << v.tile)) {
    const MmaTiles tiles =
        choose_mma_tiles({p.batch, p.m, p.n, p.k, call.caps().compute_units, kind, usable, pieces});
    v.tile = tiles.tile;
    v.pieces = tiles.pieces;
    if (is_proven(call, v)) return v;
  }
  return kNotProven;
}

// Hopper's kernels are faster where they can run.
const char* pass_over_provider(const OpCall& call) {
  return refuse_provider(call.caps(), call.policy(), kNvidiaHopper) == nullptr
             ? "the device has faster matrix products of its own"
             : nullptr;
}

void enqueue_product(const OpCall& call, const Problem& p, const MmaProduct& v, const Operand& a,
                     const Operand& b, const matmul::Guard& guard) {
  const MmaTile& t = v.form();
  const int64_t groups = v.pieces * p.batch * divide_up(p.m, t.rows) * divide_up(p.n, t.columns);
  const int64_t buffers = divide_up(p.k, t.step(v.kind));
  const int64_t sums_bytes = v.pieces == 1 ? 1 : v.pieces * p.batch * p.m * p.n * 4;
  const Scratch sums = call.scratch(static_cast<uint64_t>(sums_bytes));
  Problem q = p;
  q.a = {a.address, a.batch, a.line, a.step};
  q.b = {b.address, b.batch, b.step, b.line};
  if (v.pieces > 1) q.c = {sums.address(), p.m * p.n, p.n, 1};
  call.launch(kernels::nvidia_mma::matmul::product::matmul_mma, v.defines(call.caps()),
              {.c = v.pieces > 1 ? MemoryRange(sums) : matmul::memory_of_c(p),
               .a = matmul::memory_of_a(q),
               .b = matmul::memory_of_b(q),
               .s = matmul::memory_of_self(p),
               .word = guard.memory(),
               .stop = guard.value,
               .matrices = static_cast<int32_t>(p.batch),
               .piece_buffers = static_cast<int32_t>(divide_up(buffers, v.pieces)),
               .ends = std::nullopt,
               .faults = std::nullopt,
               .p = matmul::matmul_params(q)})
      .run({groups * t.items(), 1, 1}, {t.items(), 1, 1});
  if (v.pieces == 1) return;
  matmul::Results results = matmul::results_of(p);
  if (p.is_of_bytes()) results.types = DType::Int32;
  matmul::sum_pieces(call, results, v.pieces, sums.address(), guard);
}

void run_product(const OpCall& call, const Problem& p, const MmaProduct& v) {
  const bool along_k_only = is_along_k_only(v.kind);
  const matmul::VectorOperand a(call, p, operand_a(p), p.m, along_k_only);
  const matmul::VectorOperand b(call, p, operand_b(p), p.n, along_k_only);
  enqueue_product(call, p, v, a.operand(), b.operand(), {});
}

constinit const AlgorithmFor<Problem> kProduct({.id = "matmul.mma",
                                                .description = "matrix units by mma.sync",
                                                .style = DeviceStyle::Gpu,
                                                .provider = &kNvidiaMma},
                                               Steps<plan_direct, run_product>(), pass_over_direct);

}  // namespace ocltensor::opencl::nvidia_mma
