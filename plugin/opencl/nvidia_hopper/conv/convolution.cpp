// Convolutions on Hopper's matrix units without columns in memory: 16-bit types and TF32 as they
// are, float32 as three bf16 parts (six products, as accurate as float32).
#include "convolution.h"

#include <algorithm>

#include "call/divide_up.h"
#include "call/proofs.h"
#include "kernels/nvidia_hopper/conv.h"
#include "nvidia_hopper/provider.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

using Kind = ConvHopperKind;

constexpr int64_t kItems = 288;         // ITEMS of hopper_tile.h
constexpr int64_t kMapBytes = 2 * 128;  // of a work-group

Kind direct_kind(const conv::Problem& p) {
  if (p.dtype == DType::Float16) return Kind::Half;
  if (p.dtype == DType::BFloat16) return Kind::BFloat;
  return p.direction == conv::Direction::Weight ? Kind::Bf16x2 : Kind::Tf32;
}

ConvHopperVariant variant_of(const ConvHopperProblem& p, Kind kind, const ConvHopperProduct& c) {
  const bool weight = p.direction == conv::Direction::Weight;
  const bool half = kind == Kind::Half || kind == Kind::BFloat;
  ConvHopperVariant v{kind, c.tiles.columns, weight, half && !weight && c.tiles.pieces > 1};
  if (weight || c.tiles.pieces > 1) return v;
  const auto& strides =
      p.direction == conv::Direction::Data ? p.params.big_strides : p.params.small_strides;
  v.bias = p.bias.has_value();
  v.channels_last = half && strides[1] == 1;
  return v;
}

// Positions that no tap reaches receive the bias alone. The whole map is filled, as the launches
// overwrite the positions that they compute.
void fill_result(const OpCall& call, const ConvHopperProblem& p) {
  const ConvParams& g = p.params;
  const Dims sizes{g.batch, g.big_channels, g.in[0], g.in[1], g.in[2]};
  const LocalTensor out(p.big, p.dtype, sizes, Dims(std::span<const int64_t>(g.big_strides)));
  if (!p.bias) return copy::fill_tensor(call, out, 0);
  copy_tensor(call, out, LocalTensor(*p.bias, p.dtype, sizes, Dims{0, g.bias_stride, 0, 0, 0}));
}

void enqueue(const OpCall& call, const ConvHopperProblem& p, Kind kind, const ConvHopperProduct& c,
             const ConvHopperOperands& operands, const matmul::Guard& guard) {
  const ConvHopperVariant v = variant_of(p, kind, c);
  const int64_t tiles =
      c.tiles.pieces * divide_up(c.m, kHopperRows) * divide_up(c.n, c.tiles.columns);
  const int64_t groups = std::min<int64_t>(tiles, call.caps().compute_units);
  const Scratch maps = call.scratch(static_cast<uint64_t>(groups * kMapBytes));
  const ConvHopperResult result(call, p, kind, c);
  ConvHopperParams params = conv_hopper_params(p, kind, c, operands.map(), operands.lines());
  result.describe(params);
  call.launch(kernels::nvidia_hopper::conv::convolution::conv_hopper, v.defines(),
              {.out = result.memory(),
               .map = MemoryRange(operands.map().address, 0, 1),
               .lines = MemoryRange(operands.lines().address, 0, 1),
               .bias = conv::memory_of_bias(p),
               .word = guard.memory(),
               .stop = guard.value,
               .maps = maps,
               .p = params})
      .run({groups * kItems, 1, 1}, {kItems, 1, 1});
  result.finish(call, guard);
}

HopperTiles limited(const HopperTiles& tiles, int64_t steps) {
  const int64_t length = divide_up(steps, std::min(tiles.pieces, steps));
  return {tiles.columns, divide_up(steps, length)};
}

// Wider tiles, which take longest to compile: a network's later layers have more channels.
void report_likely(const OpCall&, const void* what, const ReportProgram& report) {
  ConvHopperVariant v = *static_cast<const ConvHopperVariant*>(what);
  if (v.kind != Kind::Half && v.kind != Kind::BFloat) return;
  v.columns = 256;
  report(kernel_sources::nvidia_hopper_conv_convolution, v.defines());
  report(kernel_sources::nvidia_hopper_conv_convolution,
         ConvHopperVariant{v.kind, 256, true, false}.defines());
}

bool is_variant_proven(const OpCall& call, const ConvHopperVariant& v) {
  static auto& proofs =
      *new Proofs<kConvHopperVariants>;  // leaked: streams may end after static objects
  static constexpr ProofTest kTest{kernel_sources::nvidia_hopper_conv_convolution,
                                   wrong_hopper_convolution, report_likely};
  return proofs.hold(
      call, v.index(), kTest, [&] { return v.defines(); }, &v);
}

// ---- The algorithms

constexpr int64_t kMostBf16Parts = int64_t{4} << 30;  // bytes

// A plan: what is multiplied, and the launches with their tiles.
struct ConvHopperPlan {
  Kind kind;
  ConvHopperProblem problem;
  std::vector<ConvHopperProduct> products;
};

Planned<ConvHopperPlan> plan(const OpCall& call, const conv::Problem& original, Kind kind) {
  const ConvHopperProblem p = original;
  if (const char* reason = refuse_hopper_geometry(p, kind)) return reason;
  if (hopper_bf16_parts_bytes(p, kind) > kMostBf16Parts)
    return "bf16 parts would take more than 4 GiB";
  std::vector<ConvHopperProduct> products =
      conv_hopper_products(p, kind, call.caps().compute_units);
  for (const ConvHopperProduct& c : products)
    if (!is_variant_proven(call, variant_of(p, kind, c)))
      return "the kernel failed its test on this driver";
  return ConvHopperPlan{kind, p, std::move(products)};
}
Planned<ConvHopperPlan> plan_direct(const OpCall& call, const conv::Problem& p) {
  const bool half = p.dtype == DType::Float16 || p.dtype == DType::BFloat16;
  if (!half && p.dtype != DType::Float32) return "not a type of the matrix units";
  if (!half && !call.policy().allow_tf32) return "TF32 is not allowed";
  return plan(call, p, direct_kind(p));
}
Planned<ConvHopperPlan> plan_bf16x6(const OpCall& call, const conv::Problem& p) {
  if (p.dtype != DType::Float32) return "not float32";
  return plan(call, p, Kind::Bf16x3);
}

// Whether the window has one element, and rows of positions are long and full vectors: products of
// the weights with each image, and in float32 of the maps of each image, then need no copy of a map
// in another order.
bool are_images_products(const conv::Problem& p) {
  constexpr int64_t kLong = 512;
  const ConvParams& g = p.params;
  const int64_t positions = g.in[1] * g.in[2];
  const bool one = g.window[1] * g.window[2] == 1 && g.padding[1] + g.padding[2] == 0 &&
                   g.stride[1] * g.stride[2] == 1;
  const bool has_algorithm = p.direction != conv::Direction::Weight || p.dtype == DType::Float32;
  return one && has_algorithm && g.big_strides[1] != 1 && g.small_strides[1] != 1 &&
         positions % 8 == 0 && positions >= kLong;
}
double multiplications(const conv::Problem& p) {
  const ConvParams& g = p.params;
  return static_cast<double>(g.batch * g.out[1] * g.out[2]) *
         static_cast<double>(g.window[1] * g.window[2] * g.big_channels * g.small_channels);
}

const char* pass_over(const conv::Problem& p, const ConvHopperProblem& inside, double least) {
  const ConvParams& g = inside.params;
  constexpr int64_t kFew = 16;
  if (std::min(g.big_channels, g.small_channels) < kFew) return "most of a copy would be zeros";
  if (are_images_products(p)) return "products of images need no other order of the map";
  return multiplications(p) < least ? "too little to multiply" : nullptr;
}
const char* pass_over_direct(const OpCall&, const conv::Problem& p) {
  constexpr double kMuch = 0x1p28;  // 5 x 5 over 256 digits: 63 us, by portable tiles 48
  const ConvHopperProblem inside = p;
  if (inside.cells && p.direction == conv::Direction::Forward && multiplications(p) < kMuch)
    return "staging cells takes longer than it saves";
  return pass_over(p, inside, 0x1p20);
}
const char* pass_over_bf16x6(const OpCall&, const conv::Problem& p) {
  constexpr int64_t kLeastSum = 128;  // shorter sums are as accurate in plain float32
  const ConvParams& g = p.params;
  const int64_t taps = g.window[1] * g.window[2];
  const int64_t channels = p.direction == conv::Direction::Data ? g.small_channels : g.big_channels;
  if (p.direction != conv::Direction::Weight && taps * channels < kLeastSum)
    return "splitting would take longer than it saves";
  return pass_over(p, p, 0x1p25);
}

// With bf16 parts plain float32 kernels are enqueued as well, for numbers that cannot be split: a
// word in device memory decides which of them do the work, so that the host does not wait for the
// device.
void run(const OpCall& call, const conv::Problem& original, const ConvHopperPlan& plan) {
  const ConvHopperProblem& p = plan.problem;
  std::vector<Scratch> word;
  const matmul::Guard guard = hopper_guard(call, p, plan.kind, word);
  const ConvHopperOperands operands(call, p, plan.kind, guard);
  if (!covers_result(p)) fill_result(call, p);
  for (const ConvHopperProduct& c : plan.products) enqueue(call, p, plan.kind, c, operands, guard);
  if (guard.word != 0) conv::run_guarded_convolution(call, original, guard);
}

}  // namespace

void run_hopper_convolution(const OpCall& call, const conv::Problem& p, Kind kind,
                            const HopperTiles& tiles) {
  ConvHopperPlan plan{kind, p, {}};
  plan.products = conv_hopper_products(plan.problem, kind, call.caps().compute_units);
  for (ConvHopperProduct& c : plan.products) c.tiles = limited(tiles, c.steps);
  run(call, p, plan);
}

constinit const AlgorithmFor<conv::Problem> kConvolution(
    {.id = "conv.hopper", .description = "Hopper's matrix units", .provider = &kNvidiaHopper},
    Steps<plan_direct, run>(), pass_over_direct);
constinit const AlgorithmFor<conv::Problem> kBf16x6Convolution(
    {.id = "conv.hopper_bf16x6",
     .description = "float32 as three bfloat16 on Hopper's matrix units",
     .provider = &kNvidiaHopper},
    Steps<plan_bf16x6, run>(), pass_over_bf16x6);

}  // namespace ocltensor::opencl::nvidia_hopper
