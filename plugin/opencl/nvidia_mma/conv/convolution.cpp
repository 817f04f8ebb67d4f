// Convolutions, forward and data, as products on matrix units by mma.sync that gather their left
// operand.
#include "convolution.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "call/proofs.h"
#include "channels_last.h"
#include "conv_implicit_params.h"
#include "kernels/nvidia_mma/conv.h"
#include "nvidia_mma/matmul/product.h"
#include "nvidia_mma/provider.h"
#include "ops/conv/phases.h"
#include "ops/copy/copy.h"
#include "ops/matmul/split_k_sum.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

using conv::Phase;
using conv::Problem;
using conv::Roles;

constexpr int64_t kMostConvPieces = 16;

int64_t padded_channels(const Problem& p) { return whole_chunks(Roles(p).channels, p.dtype); }

Maps source_maps(const Problem& p) {
  const Roles roles(p);
  return {roles.source,
          p.params.batch,
          roles.channels,
          roles.source_sizes,
          roles.source_strides,
          roles.forward ? conv::memory_of_big(p) : conv::memory_of_small(p),
          true,
          false};
}

// The weights, [channel of the target][tap][channel of the source], padded with zeros.
Scratch packed_weights(const OpCall& call, const Problem& p) {
  const Roles roles(p);
  const int64_t taps[] = {p.params.window[1], p.params.window[2]}, channels = padded_channels(p);
  const int64_t line = taps[0] * taps[1] * channels;
  Scratch memory = call.scratch(static_cast<uint64_t>(roles.m * line * size_of(p.dtype)));
  if (channels != roles.channels)
    copy::fill_tensor(call, LocalTensor(memory.address(), p.dtype, Dims{roles.m * line}), 0);
  const tk_i64* s = p.params.weight_strides;
  const Dims sizes{roles.m, taps[0], taps[1], roles.channels};
  copy_tensor(
      call,
      LocalTensor(memory.address(), p.dtype, sizes, Dims{line, taps[1] * channels, channels, 1}),
      LocalTensor(p.weight, p.dtype, sizes,
                  Dims{roles.forward ? s[0] : s[1], s[3], s[4], roles.forward ? s[1] : s[0]}));
  return memory;
}

ConvImplicitParams params_of(const Problem& p, std::span<const Phase> phases,
                             const ChannelsLast& source) {
  ConvImplicitParams k = product_of(p, phases);
  k.padded_channels = padded_channels(p);
  k.source_image = source.image();
  k.source_channel = 1;
  k.source_row = source.row();
  k.source_column = source.column();
  k.padded_m = p.params.window[1] * p.params.window[2] * k.padded_channels;
  return k;
}

int64_t terms_of(const Problem& p, const Phase& phase) {
  return phase.y.taps * phase.x.taps * padded_channels(p);
}

// Whether a phase's pixels lie at equal distances in an image of the target, as sums of pieces
// need.
bool is_one_run(const Problem& p, const Phase& phase) {
  const tk_i64* to = Roles(p).target_strides;
  return to[3] * phase.y.step == phase.x.outputs * to[4] * phase.x.step;
}

// One launch of several phases, or of one in pieces and the sum of these.
class PhaseRun {
 public:
  PhaseRun(const OpCall& call, const Problem& p, const ConvMma& v, const ChannelsLast& source,
           const Scratch& weights)
      : call_(call), p_(p), v_(v), source_(source), weights_(weights) {}

  void operator()(std::span<const Phase> phases) const {
    ConvImplicitParams k = params_of(p_, phases, source_);
    const auto count = static_cast<int64_t>(phases.size());
    const int64_t buffers = divide_up(terms_of(p_, phases[0]), v_.form().step(v_.kind));
    const int64_t pieces = count == 1 && is_one_run(p_, phases[0])
                               ? std::clamp<int64_t>(v_.pieces, 1, std::max<int64_t>(buffers, 1))
                               : 1;
    k.steps = divide_up(buffers, pieces);
    if (pieces > 1) return in_pieces(k, pieces);
    launch(k, Roles(p_).forward ? conv::memory_of_small(p_) : conv::memory_of_big(p_), count);
  }

 private:
  // Sums lie as [piece][image][pixel][channel].
  void in_pieces(ConvImplicitParams k, int64_t pieces) const {
    const ConvPhase& all = k.phases[0];
    const tb_address target =
        Roles(p_).target + static_cast<uint64_t>(all.target * size_of(p_.dtype));
    matmul::Results sum{.types = p_.dtype,
                        .batch = p_.params.batch,
                        .m = all.map_pixels,
                        .n = k.m,
                        .c = {target, k.target_image, k.target_column, k.target_channel}};
    if (p_.bias) {
      sum.end.add({*p_.bias, 0, 0, k.bias_stride});
    }
    k.piece = all.pixels * k.m;
    k.target_image = all.map_pixels * k.m;
    k.target_row = all.row_pixels * k.m;
    k.target_column = k.m;
    k.target_channel = 1;
    const Scratch sums = call_.scratch(static_cast<uint64_t>(pieces * k.piece * 4));
    launch(k, sums, pieces, true);
    matmul::sum_pieces(call_, sum, pieces, sums.address());
  }

  // `count` phases, or pieces.
  void launch(const ConvImplicitParams& k, const MemoryRange& target, int64_t count,
              bool in_pieces = false) const {
    ConvMma v = v_;
    v.pieces = in_pieces ? count : 1;
    const auto phases = static_cast<size_t>(in_pieces ? 1 : count);
    const int64_t most = conv::most_pixels({k.phases, phases});
    const MmaTile& t = v.form();
    call_
        .launch(kernels::nvidia_mma::conv::convolution::convolution_mma, v.defines(call_.caps()),
                {.target = target,
                 .source = source_.memory(),
                 .weight = weights_,
                 .bias = in_pieces ? MemoryRange(nullptr) : conv::memory_of_bias(p_),
                 .p = k})
        .run({divide_up(most, t.rows) * t.items(), divide_up(k.m, t.columns), count},
             {t.items(), 1, 1});
  }

  const OpCall& call_;
  const Problem& p_;
  ConvMma v_;
  const ChannelsLast& source_;
  const Scratch& weights_;
};

// In one piece and in several.
void report_likely(const OpCall& call, const void* what, const ReportProgram& report) {
  ConvMma v = *static_cast<const ConvMma*>(what);
  for (v.pieces = 1; v.pieces <= 2; ++v.pieces)
    report(kernel_sources::nvidia_mma_conv_convolution, v.defines(call.caps()));
}

bool is_proven(const OpCall& call, const ConvMma& v) {
  static auto& proofs = *new Proofs<kConvMmas>;  // leaked: streams may end after static objects
  static constexpr ProofTest kTest{kernel_sources::nvidia_mma_conv_convolution,
                                   wrong_mma_convolution, report_likely};
  return proofs.hold(
      call, v.index(), kTest, [&] { return v.defines(call.caps()); }, &v);
}

// The form for the phase with the most terms, which serves them all.
Planned<ConvMma> plan_form(const OpCall& call, const Problem& p, MmaKind kind) {
  const Roles roles(p);
  const std::vector<Phase> phases = phases_of(p);
  const auto& most = *std::ranges::max_element(
      phases, {}, [&](const Phase& f) { return terms_of(p, f) * f.y.outputs * f.x.outputs; });
  const bool in_one =
      std::ranges::any_of(phases, [&](const Phase& f) { return !is_one_run(p, f); });
  uint32_t usable = usable_conv_tiles(call.caps(), kind);
  ConvMma v{kind, 0, p.bias.has_value()};
  for (; usable != 0; usable &= ~(1u << v.tile)) {
    const MmaTiles tiles =
        choose_mma_tiles({1, p.params.batch * most.y.outputs * most.x.outputs, roles.m,
                          std::max<int64_t>(terms_of(p, most), 1), call.caps().compute_units, kind,
                          usable, in_one ? 1 : kMostConvPieces});
    v.tile = tiles.tile;
    v.pieces = tiles.pieces;
    ConvMma whole = v;  // short phases run in one piece
    whole.pieces = 1;
    if (is_proven(call, v) && (v.pieces == 1 || is_proven(call, whole))) return v;
  }
  return "the kernels failed their tests on this driver";
}

Planned<ConvMma> plan(const OpCall& call, const Problem& p) {
  if (const char* reason = conv::refuse_gathering(p)) return reason;
  const Roles roles(p);
  const int64_t channels = padded_channels(p), item = size_of(p.dtype);
  const auto bytes = [&](Extent reach) { return reach.high * item; };
  const int64_t rows = roles.source_sizes[1], columns = roles.source_sizes[2];
  const tk_i64* s = roles.source_strides;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  if (std::max({channels * p.params.window[1] * p.params.window[2] * item,
                rows * columns * channels * item,
                bytes(extent(Dims{rows, columns}, Dims{s[3], s[4]}))}) > kMost)
    return "the sizes need 64 bits";
  if (call.caps().max_work_group_size < 256) return "work-groups are too small";
  Planned<MmaKind> kind = kind_of(call, p.dtype);
  return kind.reason() != nullptr ? kind.reason() : plan_form(call, p, kind.plan());
}

const char* pass_over(const OpCall& call, const Problem& p) {
  if (const char* reason = pass_over_provider(call)) return reason;
  const ConvParams& g = p.params;
  constexpr int64_t kFew = 16;  // an image's three channels took as long as in portable kernels
  if (std::min(g.big_channels, g.small_channels) < kFew) return "most of a chunk would be zeros";
  const bool one = g.window[1] * g.window[2] == 1 && g.padding[1] + g.padding[2] == 0 &&
                   g.stride[1] * g.stride[2] == 1;
  if (one) return "products of images need no other order of the map";
  const double products = static_cast<double>(g.batch * g.out[1] * g.out[2]) *
                          static_cast<double>(g.window[1] * g.window[2] * g.big_channels) *
                          static_cast<double>(g.small_channels);
  return products < 0x1p20 ? "too little to multiply" : nullptr;
}

}  // namespace

uint32_t usable_conv_tiles(const Capabilities& caps, MmaKind kind) {
  uint32_t usable = usable_tiles(kind, generation(caps), most_local_memory(caps));
  for (size_t i = 0; i < kMmaTiles.size(); ++i)  // addresses take the registers of what is ahead
    if (kMmaTiles[i].ahead) usable &= ~(1u << i);
  return usable;
}

Defines ConvMma::defines(const Capabilities& caps) const {
  Defines d = tile_defines(caps, kind, tile, true, true);
  return d.set(define::ADD_SELF, bias && pieces == 1).set(define::PARTIAL, pieces > 1);
}

void run_convolution(const OpCall& call, const Problem& p, const ConvMma& v) {
  const ChannelsLast source(call, source_maps(p), p.dtype);
  const Scratch weights = packed_weights(call, p);
  const PhaseRun run(call, p, v, source, weights);
  for (const std::vector<Phase>& phases : conv::launches_of(phases_after_zeros(call, p)))
    run(phases);
}

constinit const AlgorithmFor<Problem> kConvolution({.id = "conv.mma",
                                                    .description = "matrix units by mma.sync",
                                                    .style = DeviceStyle::Gpu,
                                                    .provider = &kNvidiaMma},
                                                   Steps<plan, run_convolution>(), pass_over);

}  // namespace ocltensor::opencl::nvidia_mma
