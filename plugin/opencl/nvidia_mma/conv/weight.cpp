// Gradients of convolutions' weights as products on matrix units by mma.sync that gather their
// right operand, pixel by pixel.
#include "weight.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "call/proofs.h"
#include "channels_last.h"
#include "conv_implicit_weight_params.h"
#include "convolution.h"
#include "kernels/nvidia_mma/conv.h"
#include "nvidia_mma/matmul/product.h"
#include "nvidia_mma/provider.h"
#include "ops/conv/phases.h"
#include "ops/copy/copy.h"
#include "ops/matmul/split_k_sum.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

using conv::Problem;

int64_t taps_of(const ConvParams& g) { return g.window[1] * g.window[2]; }
int64_t pixels_of(const ConvParams& g) { return g.batch * g.out[1] * g.out[2]; }
// Columns of the product: the big map's channels, padded, of every tap.
int64_t columns_of(const Problem& p) {
  return taps_of(p.params) * whole_chunks(p.params.big_channels, p.dtype);
}

Maps big_maps(const Problem& p) {
  const ConvParams& g = p.params;
  return {p.big, g.batch, g.big_channels, g.in, g.big_strides, conv::memory_of_big(p), true, false};
}
Maps small_maps(const Problem& p) {
  const ConvParams& g = p.params;
  return {p.small, g.batch, g.small_channels, g.out, g.small_strides, conv::memory_of_small(p),
          false,   true};
}

ConvImplicitWeightParams params_of(const Problem& p, const ChannelsLast& small,
                                   const ChannelsLast& big) {
  const ConvParams& g = p.params;
  const conv::Axis y = conv::forward_axis(g, 1), x = conv::forward_axis(g, 2);
  return {.m = g.small_channels,
          .n = columns_of(p),
          .taps_inner = 0,
          .channels = whole_chunks(g.big_channels, p.dtype),
          .taps = taps_of(g),
          .tap_columns = g.window[2],
          .images = g.batch,
          .map_rows = y.outputs,
          .row_pixels = x.outputs,
          .rows = g.in[1],
          .columns = g.in[2],
          .small_image = small.image(),
          .small_channel = 1,
          .small_row = small.row(),
          .small_column = small.column(),
          .big_image = big.image(),
          .big_channel = 1,
          .big_row = big.row(),
          .big_column = big.column(),
          .first = {y.start, x.start},
          .pixel_step = {y.stride, x.stride},
          .tap_step = {y.dilation, x.dilation},
          .steps = 0,
          .piece = 0,
          .target_m = columns_of(p),
          .target_n = 1};
}

// Whether the weights lie in the order of the columns, without padding.
bool takes_columns(const Problem& p) {
  const ConvParams& g = p.params;
  const tk_i64* s = g.weight_strides;
  return s[1] == 1 && whole_chunks(g.big_channels, p.dtype) == g.big_channels &&
         (g.window[2] == 1 || s[4] == g.big_channels) &&
         (g.window[1] == 1 || s[3] == g.window[2] * g.big_channels);
}

void launch(const OpCall& call, const WeightMma& v, const ConvImplicitWeightParams& k,
            const MemoryRange& target, const ChannelsLast& small, const ChannelsLast& big) {
  const MmaTile& t = v.form();
  call.launch(kernels::nvidia_mma::conv::weight::weight_mma, v.defines(call.caps()),
              {.target = target, .small = small.memory(), .big = big.memory(), .p = k})
      .run({divide_up(k.n, t.columns) * t.items(), divide_up(k.m, t.rows), v.pieces},
           {t.items(), 1, 1});
}

// Writes columns, lines of `line` elements, to `target`: at once, or as sums of pieces.
void run_columns(const OpCall& call, const Problem& p, const WeightMma& wish, tb_address target,
                 const MemoryRange& memory, int64_t line) {
  const ChannelsLast small(call, small_maps(p), p.dtype), big(call, big_maps(p), p.dtype);
  ConvImplicitWeightParams k = params_of(p, small, big);
  const int64_t buffers = divide_up(pixels_of(p.params), wish.form().step(wish.kind));
  k.steps = divide_up(buffers, std::min(wish.pieces, buffers));
  WeightMma v = wish;
  v.pieces = divide_up(buffers, k.steps);
  if (v.pieces == 1 && wish.pieces == 1) {
    k.target_m = line;
    return launch(call, v, k, memory, small, big);
  }
  WeightMma cut = v;
  cut.pieces = std::max<int64_t>(v.pieces, 2);  // the kernel that writes floats
  k.piece = k.m * k.n;
  const Scratch sums = call.scratch(static_cast<uint64_t>(cut.pieces * k.piece * 4));
  launch(call, cut, k, sums, small, big);
  const matmul::Results sum{
      .types = p.dtype, .batch = 1, .m = k.m, .n = k.n, .c = {target, 0, line, 1}};
  matmul::sum_pieces(call, sum, cut.pieces, sums.address());
}

bool is_proven(const OpCall& call, const WeightMma& v) {
  static auto& proofs = *new Proofs<kWeightMmas>;  // leaked: streams may end after static objects
  static constexpr ProofTest kTest{kernel_sources::nvidia_mma_conv_weight, wrong_mma_weight};
  return proofs.hold(
      call, v.index(), kTest, [&] { return v.defines(call.caps()); }, &v);
}

Planned<WeightMma> plan_form(const OpCall& call, const Problem& p, MmaKind kind) {
  uint32_t usable = usable_conv_tiles(call.caps(), kind);
  WeightMma v{kind, 0};
  for (; usable != 0; usable &= ~(1u << v.tile)) {
    const MmaTiles tiles =
        choose_mma_tiles({1, p.params.small_channels, columns_of(p), pixels_of(p.params),
                          call.caps().compute_units, kind, usable, kMostPieces});
    v.tile = tiles.tile;
    v.pieces = tiles.pieces;
    if (is_proven(call, v)) return v;
  }
  return "the kernels failed their tests on this driver";
}

Planned<WeightMma> plan(const OpCall& call, const Problem& p) {
  if (p.direction != conv::Direction::Weight) return "not the gradient of weights";
  if (const char* reason = conv::refuse_phases(p)) return reason;
  const ConvParams& g = p.params;
  if (g.groups != 1) return "several groups";
  if (pixels_of(g) == 0 || columns_of(p) == 0) return "nothing to sum";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  const int64_t big_image = g.in[1] * g.in[2] * whole_chunks(g.big_channels, p.dtype);
  const auto reach = [](const tk_i64* sizes, const tk_i64* strides) {
    return extent(Dims{sizes[1], sizes[2]}, Dims{strides[3], strides[4]}).high;
  };
  if (std::max({pixels_of(g), columns_of(p), g.small_channels, big_image,
                reach(g.in, g.big_strides)}) > kMost)
    return "the sizes need 64 bits";
  if (call.caps().max_work_group_size < 256) return "work-groups are too small";
  Planned<MmaKind> kind = kind_of(call, p.dtype);
  return kind.reason() != nullptr ? kind.reason() : plan_form(call, p, kind.plan());
}

const char* pass_over(const OpCall& call, const Problem& p) {
  if (const char* reason = pass_over_provider(call)) return reason;
  constexpr int64_t kFew = 16;
  if (p.params.small_channels < kFew) return "most of a tile would be empty";
  const double products = static_cast<double>(pixels_of(p.params)) *
                          static_cast<double>(columns_of(p) * p.params.small_channels);
  return products < 0x1p20 ? "too little to multiply" : nullptr;
}

}  // namespace

Defines WeightMma::defines(const Capabilities& caps) const {
  return tile_defines(caps, kind, tile, false, false).set(define::PARTIAL, pieces > 1);
}

void run_weight(const OpCall& call, const Problem& p, const WeightMma& v) {
  const ConvParams& g = p.params;
  const int64_t line = columns_of(p);
  if (takes_columns(p))
    return run_columns(call, p, v, p.weight, conv::memory_of_weight(p), g.weight_strides[0]);
  const Scratch columns =
      call.scratch(static_cast<uint64_t>(g.small_channels * line * size_of(p.dtype)));
  run_columns(call, p, v, columns.address(), columns, line);
  const int64_t channels = whole_chunks(g.big_channels, p.dtype);
  const tk_i64* s = g.weight_strides;
  const Dims sizes{g.small_channels, g.window[1], g.window[2], g.big_channels};
  copy_tensor(call, LocalTensor(p.weight, p.dtype, sizes, Dims{s[0], s[3], s[4], s[1]}),
              LocalTensor(columns.address(), p.dtype, sizes,
                          Dims{line, g.window[2] * channels, channels, 1}));
}

constinit const AlgorithmFor<Problem> kWeight(
    {.id = "conv.mma_weight",
     .description = "gradients of weights on matrix units by mma.sync",
     .style = DeviceStyle::Gpu,
     .provider = &kNvidiaMma},
    Steps<plan, run_weight>(), pass_over);

}  // namespace ocltensor::opencl::nvidia_mma
