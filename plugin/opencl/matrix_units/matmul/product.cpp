// Matrix products on matrix units: which problems they take, the kernel's launch, and an algorithm
// for each provider.
#include "product.h"

#include <algorithm>

#include "call/proofs.h"
#include "kernels/matrix_units/matmul.h"
#include "matrix_units/device_facts.h"
#include "matrix_units/provider.h"
#include "matrix_units/unit_defines.h"
#include "ops/matmul/layer_forms.h"
#include "ops/matmul/operand.h"
#include "ops/matmul/split_k_sum.h"

namespace ocltensor::opencl::matrix_units {
namespace {

using matmul::Operand;
using matmul::Problem;

const Architecture& architecture(const OpCall& call) { return *facts(call.caps()).architecture; }
const Form& form_of(const OpCall& call, const Product& v) {
  return forms(architecture(call))[v.form];
}

// A network's layers in all forms, in tiles of the same size.
void report_likely(const OpCall& call, const void* what, const ReportProgram& report) {
  Product v = *static_cast<const Product*>(what);
  v.pieces = 1;
  for (const matmul::LayerForm& f : matmul::kLayerForms) {
    v.a_along_k = f.a_along_k, v.b_along_k = f.b_along_k;
    v.self = f.self && v.kind != Kind::Int8;
    report(kernel_sources::matrix_units_matmul_product, v.defines(call.caps()));
  }
}

bool is_proven(const OpCall& call, const Product& v) {
  static auto& proofs = *new Proofs<kProducts>;  // leaked: streams may end after static objects
  static constexpr ProofTest kTest{kernel_sources::matrix_units_matmul_product, wrong_product,
                                   report_likely, false};
  return proofs.hold(
      call, v.index(), kTest, [&] { return v.defines(call.caps()); }, &v);
}

// Lines run along k once an operand can be read: what cannot is copied along k.
bool reads_along_k(const Problem& p, const Operand& o) {
  return o.along_k() || !matmul::has_vector_lines(p, o, false);
}

Planned<Kind> kind_of(const OpCall& call, const Problem& p) {
  constexpr Kind kAll[] = {Kind::Half, Kind::BFloat, Kind::Float, Kind::Int8};
  if (p.types.a != p.types.b) return "the factors have different types";
  const Kind* found = std::ranges::find(kAll, p.types.a, type_of);
  if (found == std::end(kAll) || !has(facts(call.caps()).kinds, *found))
    return "not a type of the matrix unit";
  if (*found == Kind::Int8 && p.types.result != DType::Int32) return "the sums are not kept";
  return *found;
}

const char* refuse(const Problem& p) {
  constexpr int64_t kLeastRows = 16;  // of a tile
  return matmul::refuse_for_units(p, kLeastRows, kMostPieces);
}

int64_t most_pieces(const OpCall& call, Kind kind) {
  if (kind == Kind::Float || kind == Kind::Int8) return kMostPieces;
  const ReducedSums& sums = kind == Kind::BFloat ? call.policy().bf16 : call.policy().fp16;
  return sums.split ? kMostPieces : 1;
}

// A few rows are bound by memory, which many small work-groups read faster; and so are copies.
const char* pass_over(const OpCall&, const Problem& p) {
  constexpr int64_t kWorthACopy = 64;
  if (p.m <= 4) return "a few rows";
  if (p.k < 16 || p.n < 16) return "too little to multiply";
  const auto copied = [&p](const Operand& o) { return !matmul::has_vector_lines(p, o, false); };
  if ((p.m < kWorthACopy && copied(operand_b(p))) || (p.n < kWorthACopy && copied(operand_a(p))))
    return "copying an operand would take longer than it saves";
  return nullptr;
}

}  // namespace

DType Product::result() const {
  if (kind == Kind::Int8) return DType::Int32;
  return pieces > 1 || float_result ? DType::Float32 : type_of(kind);
}

Defines Product::defines(const Capabilities& caps) const {
  const DeviceFacts& of = facts(caps);
  const Form& f = forms(*of.architecture)[form];
  Defines d;
  set_unit(d, *of.architecture, of.emulated, f.fragment, kind);
  d.set(define::FRAGMENTS_M, f.fragments_m).set(define::FRAGMENTS_N, f.fragments_n);
  d.set(define::SUBGROUPS_M, f.sub_groups_m).set(define::SUBGROUPS_N, f.sub_groups_n);
  d.set(define::LINE_BYTES, f.line_bytes).set(define::BUFFERS, f.buffers);
  d.set(define::AHEAD, f.ahead);
  d.set(define::A_ALONG_K, a_along_k).set(define::B_ALONG_K, b_along_k);
  d.type(define::RESULT, result());
  d.type(define::SELF_TYPE, float_self ? DType::Float32 : type_of(kind));
  return d.set(define::ADD_SELF, self && pieces == 1).set(define::PARTIAL, pieces > 1);
}

Planned<Product> plan_product(const OpCall& call, const Problem& p) {
  if (const char* reason = refuse(p)) return reason;
  Planned<Kind> kind = kind_of(call, p);
  if (kind.reason() != nullptr) return kind.reason();
  Product v{kind.plan(),
            0,
            reads_along_k(p, operand_a(p)),
            reads_along_k(p, operand_b(p)),
            p.end.self.has_value(),
            1,
            p.types.result != p.types.a && !p.is_of_bytes(),
            p.end.self && p.types.self != p.types.a};
  const Architecture& a = architecture(call);
  uint32_t usable = usable_forms(a, call.caps());
  if (usable == 0) return "work-groups or local memory are too small";
  for (; usable != 0; usable &= ~(1u << v.form)) {
    const Choice choice = choose_form(a, {p.batch, p.m, p.n, p.k, call.caps().compute_units, v.kind,
                                          usable, most_pieces(call, v.kind)});
    v.form = choice.form;
    v.pieces = choice.pieces;
    if (is_proven(call, v)) return v;
  }
  return "the kernels failed their tests on this driver";
}

void run_product(const OpCall& call, const Problem& p, const Product& v) {
  const matmul::VectorOperand a(call, p, operand_a(p), p.m, false);
  const matmul::VectorOperand b(call, p, operand_b(p), p.n, false);
  const Architecture& device = architecture(call);
  const Form& f = form_of(call, v);
  const int64_t tiles = divide_up(p.m, f.rows(device)) * divide_up(p.n, f.columns(device));
  const int64_t sums_bytes = v.pieces == 1 ? 1 : v.pieces * p.batch * p.m * p.n * 4;
  const Scratch sums = call.scratch(static_cast<uint64_t>(sums_bytes));
  Problem q = p;
  q.a = {a.operand().address, a.operand().batch, a.operand().line, a.operand().step};
  q.b = {b.operand().address, b.operand().batch, b.operand().step, b.operand().line};
  if (v.pieces > 1) q.c = {sums.address(), p.m * p.n, p.n, 1};
  call.launch(kernels::matrix_units::matmul::product::matmul_units, v.defines(call.caps()),
              {.c = v.pieces > 1 ? MemoryRange(sums) : matmul::memory_of_c(p),
               .a = matmul::memory_of_a(q),
               .b = matmul::memory_of_b(q),
               .s = matmul::memory_of_self(p),
               .matrices = static_cast<int32_t>(p.batch),
               .piece_buffers =
                   static_cast<int32_t>(divide_up(divide_up(p.k, f.step(v.kind)), v.pieces)),
               .p = matmul::matmul_params(q)})
      .run({v.pieces * p.batch * tiles * f.items(device), 1, 1}, {f.items(device), 1, 1});
  if (v.pieces == 1) return;
  matmul::Results results = matmul::results_of(p);
  if (p.is_of_bytes()) results.types = DType::Int32;
  matmul::sum_pieces(call, results, v.pieces, sums.address());
}

constinit const AlgorithmFor<Problem> kDotProduct(
    {.id = "matmul.amd_dot",
     .description = "AMD's dot products of two or four numbers",
     .style = DeviceStyle::Gpu,
     .provider = &kAmdDot},
    Steps<plan_product, run_product>(), pass_over);
constinit const AlgorithmFor<Problem> kMfmaProduct({.id = "matmul.amd_mfma",
                                                    .description = "AMD's matrix units by MFMA",
                                                    .style = DeviceStyle::Gpu,
                                                    .provider = &kAmdMfma},
                                                   Steps<plan_product, run_product>(), pass_over);
constinit const AlgorithmFor<Problem> kWmmaProduct({.id = "matmul.amd_wmma",
                                                    .description = "AMD's matrix units by WMMA",
                                                    .style = DeviceStyle::Gpu,
                                                    .provider = &kAmdWmma},
                                                   Steps<plan_product, run_product>(), pass_over);
constinit const AlgorithmFor<Problem> kXmxProduct(
    {.id = "matmul.intel_xmx",
     .description = "Intel's matrix units by sub-group functions",
     .style = DeviceStyle::Gpu,
     .provider = &kIntelXmx},
    Steps<plan_product, run_product>(), pass_over);

}  // namespace ocltensor::opencl::matrix_units
