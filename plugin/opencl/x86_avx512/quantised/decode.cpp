// Few rows with weights of 4 bits: a work-item takes rows of the weight, 128 elements at once.
#include "decode.h"

#include "call/proofs.h"
#include "kernels/x86_avx512/quantised.h"
#include "x86_avx512/provider.h"

namespace ocltensor::opencl::x86_avx512 {
namespace {

using quantised::Product;

constexpr int64_t kStep = 128;  // STEP of the kernel

// ORDER, LEAST and FLIPPED of the kernel: how the nibbles of a word are elements, and their
// numbers.
struct Kind {
  std::string_view format;
  int64_t order, least, flipped;
};
constexpr Kind kKinds[] = {{"int4", 0, 0, 0}, {"int4_signed", 0, -8, 8}, {"nf4", 1, 0, 0},
                           {"fp4", 1, 0, 0},  {"codes", 1, 0, 0},        {"int4_tiles", 2, -8, 0}};

const Kind* kind_of(const Product& p) {
  for (const Kind& kind : kKinds)
    if (kind.format == p.weight.format->name) return &kind;
  return nullptr;
}

bool is_proven(const OpCall& call) {
  static constexpr char kOnly = 0;       // there is one kernel
  static auto& proofs = *new Proofs<1>;  // leaked: streams may end after static objects
  static constexpr ProofTest kTest{kernel_sources::x86_avx512_quantised_decode, wrong_decode};
  return proofs.hold(
      call, 0, kTest, [] { return Defines(); }, &kOnly);
}

const char* refuse(const OpCall& call, const Product& p) {
  if (const char* reason = quantised::refuse_decode(p)) return reason;
  if (kind_of(p) == nullptr) return "its elements do not choose among 16 numbers";
  if (p.weight.k % kStep != 0) return "rows are not of whole steps of 128 elements";
  if (p.weight.format->layout == WeightLayout::Tiles && p.weight.tile_columns() != kStep)
    return "tiles of less than 128 columns";
  return is_proven(call) ? nullptr : "its proof failed";
}

}  // namespace

void run_decode(const OpCall& call, const Product& p) {
  QuantisedParams params = quantised::decode_params(p);
  const Division division = quantised::divide_rows(p, params);
  const Kind& kind = *kind_of(p);
  Defines d = quantised::decode_defines(call, p).set(define::ROWS, quantised::decode_rows(p));
  d.set(define::ORDER, kind.order).set(define::LEAST, kind.least);
  const WeightZero zero = p.weight.format->zero;
  d.set(define::FLIPPED, kind.flipped);
  d.set(define::ZEROS, zero == WeightZero::Codes ? 0 : static_cast<int64_t>(zero));
  d.set(define::GROUPS, p.weight.group >= kStep ? 1 : kStep / p.weight.group);
  quantised::launch_decode(call, p, kernels::x86_avx512::quantised::decode::decode, d, params,
                           division);
}

constinit const AlgorithmFor<Product> kDecode(
    {.id = "quantised.decode_permuted",
     .description = "few rows of x: nibbles choose among numbers by VPERMPS",
     .style = DeviceStyle::Cpu,
     .provider = &kX86Avx512},
    Steps<refuse, run_decode>());

}  // namespace ocltensor::opencl::x86_avx512
