// Few rows of x as bytes: a work-item takes rows of the weight, 64 to 256 elements at once.
#include "dots.h"

#include <algorithm>

#include "call/divide_up.h"
#include "call/proofs.h"
#include "kernels/x86_avx512/quantised.h"
#include "x86_avx512/provider.h"

namespace ocltensor::opencl::x86_avx512 {
namespace {

using quantised::Product;

// The formats that the kernel knows, and the elements of a step of theirs (STEP).
struct Kind {
  std::string_view format;
  int64_t step;
};
constexpr Kind kKinds[] = {{"int8", 64},         {"int8_zeros", 64},  {"q8_0", 64},  {"int4", 128},
                           {"int4_signed", 128}, {"int4_tiles", 128}, {"q4_0", 128}, {"q4_1", 128},
                           {"q4_k", 256},        {"q5_k", 256},       {"q6_k", 256}};

const Kind* kind_of(const Product& p) {
  const auto* found = std::ranges::find(kKinds, p.weight.format->name, &Kind::format);
  return found == std::end(kKinds) ? nullptr : found;
}

// Of XStep, the kernel's structure of a step.
int64_t most_bytes(int64_t step) {
  constexpr int64_t kVector = 64;
  const int64_t sums = step == 256 ? 4 : 1;
  return step + (2 * sums + 1) * kVector;
}

bool has_vnni() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni") != 0;
#else
  return false;
#endif
}

bool is_proven(const OpCall& call) {
  static constexpr char kOnly = 0;       // there is one kernel
  static auto& proofs = *new Proofs<1>;  // leaked: streams may end after static objects
  static constexpr ProofTest kTest{kernel_sources::x86_avx512_quantised_dots, wrong_dots};
  return proofs.hold(
      call, 0, kTest, [] { return Defines(); }, &kOnly);
}

const char* refuse(const OpCall& call, const Product& p) {
  if (!call.policy().allow_int8_activations) return "activations of 8 bits are not allowed";
  if (const char* reason = quantised::refuse_decode(p)) return reason;
  const Kind* kind = kind_of(p);
  if (kind == nullptr) return "its elements are not whole numbers";
  if (p.weight.format->layout == WeightLayout::Tiles && p.weight.tile_columns() != kind->step)
    return "tiles of less than 128 columns";
  if (!has_vnni()) return "the processor has no AVX512-VNNI";
  return is_proven(call) ? nullptr : "its proof failed";
}

}  // namespace

void run_dots(const OpCall& call, const Product& p) {
  constexpr int64_t kPieces = 64;  // steps that an item prepares
  QuantisedParams params = quantised::decode_params(p);
  const Division division = quantised::divide_rows(p, params);
  const int64_t rows = quantised::decode_rows(p);
  Defines d = quantised::decode_defines(call, p).set(define::ROWS, rows);
  const int64_t step = kind_of(p)->step, group = p.weight.group;
  d.set(define::ZEROS, static_cast<int64_t>(p.weight.format->zero));
  d.set(define::GROUPS, group == 0 || group >= step || group == p.weight.k ? 1 : step / group);
  const int64_t steps = divide_up(p.weight.k, step);
  const Scratch of_x = call.scratch(static_cast<uint64_t>(steps * rows * most_bytes(step)));
  params.pieces = kPieces;
  if (steps > 0)
    call.launch(kernels::x86_avx512::quantised::dots::prepare, d,
                {.of_x = of_x, .x = p.x, .p = params})
        .run({divide_up(steps, kPieces), rows, 1}, {1, 1, 1});
  quantised::launch_decode(call, p, kernels::x86_avx512::quantised::dots::decode, d, params,
                           division, of_x);
}

constinit const AlgorithmFor<Product> kDots(
    {.id = "quantised.decode_vnni",
     .description = "few rows of x as bytes: VPDPBUSD multiplies 64 pairs",
     .style = DeviceStyle::Cpu,
     .provider = &kX86Avx512},
    Steps<refuse, run_dots>());

}  // namespace ocltensor::opencl::x86_avx512
