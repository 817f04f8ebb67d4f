// Convolution on GPUs as an implicit product of matrices, forward and data: what columns
// (columns.cpp) would hold is gathered tile by tile. A launch of the data direction of a strided
// convolution has several phases, the remainders of the position by the stride.
#include <algorithm>
#include <optional>
#include <utility>

#include "call/divide_up.h"
#include "conv.h"
#include "conv_implicit_params.h"
#include "kernels/conv.h"
#include "ops/copy/copy.h"
#include "ops/matmul/split_k_sum.h"
#include "phases.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kStep = 8;      // BK of implicit.cl
constexpr int64_t kPixels = 128;  // BN
constexpr int64_t kPixelsOfItem = 8;
constexpr uint64_t kLocalMemory = 2 * kStep * (128 + kPixels) * sizeof(float);

const char* refuse(const OpCall& call, const Problem& p) {
  const Roles roles(p);
  if (const char* reason = refuse_gathering(p)) return reason;
  if (!call.caps().large_register_tiles()) return "a work-item has too few registers";
  if (roles.m < kStep || (roles.channels < kStep && !roles.forward)) return "few channels";
  if (call.caps().max_work_group_size < kPixels) return "work-groups are too small";
  if (call.caps().local_memory < kLocalMemory) return "too little local memory";
  return nullptr;
}

// Of few channels, the channels count as columns of taps, and the window's columns as channels.
bool along_window(const Problem& p) { return Roles(p).channels < kStep; }

// The weights, [tap][channel of the source][channel of the target], padded with zeros.
class PackedWeights {
 public:
  PackedWeights(const OpCall& call, const Problem& p, int64_t tile)
      : taps_{p.params.window[1], p.params.window[2]},
        channels_(Roles(p).channels),
        m_(divide_up(Roles(p).m, tile) * tile) {
    const Roles roles(p);
    const tk_i64* s = p.params.weight_strides;
    const int64_t m_stride = roles.forward ? s[0] : s[1];
    int64_t tap_stride = s[4];
    int64_t channel_stride = roles.forward ? s[1] : s[0];
    if (along_window(p)) {
      std::swap(taps_[1], channels_);
      std::swap(tap_stride, channel_stride);
    }
    const Dims sizes{taps_[0], taps_[1], channels_, roles.m};
    const Dims strides{s[3], tap_stride, channel_stride, m_stride};
    const int64_t padded = padded_channels();
    const int64_t count = taps_[0] * taps_[1] * padded * m_;
    memory_.emplace(call.scratch(static_cast<uint64_t>(count * size_of(p.dtype))));
    const tb_address at = memory_->address();
    if (padded != channels_ || m_ != roles.m)
      copy::fill_tensor(call, LocalTensor(at, p.dtype, Dims{count}), 0);
    copy_tensor(call,
                LocalTensor(at, p.dtype, sizes, Dims{taps_[1] * padded * m_, padded * m_, m_, 1}),
                LocalTensor(p.weight, p.dtype, sizes, strides));
  }
  int64_t tap_columns() const { return taps_[1]; }
  int64_t channels() const { return channels_; }
  int64_t padded_channels() const { return divide_up(channels_, kStep) * kStep; }
  int64_t m() const { return m_; }
  operator MemoryRange() const { return *memory_; }  // NOLINT: implicit on purpose

 private:
  int64_t taps_[2];
  int64_t channels_, m_;
  std::optional<Scratch> memory_;
};

struct Sizes {
  int64_t tile;    // rows: channels of the target
  int64_t pieces;  // of the sums; 0: by rule
};

class Run {
 public:
  Run(const OpCall& call, const Problem& p, const Sizes& sizes)
      : call_(call), p_(p), roles_(p), sizes_(sizes), weights_(call, p, sizes.tile) {}

  void operator()(std::span<const Phase> phases) const {
    const ConvImplicitParams k = params(phases);
    const auto count = static_cast<int64_t>(phases.size());
    const int64_t pieces = count == 1 ? pieces_of(k) : 1;
    if (pieces == 1) return launch(k, Output{roles_.target, false}, count);
    in_pieces(k, pieces);
  }

 private:
  struct Output {
    tb_address address;
    bool pieces;
  };

  ConvImplicitParams params(std::span<const Phase> phases) const {
    const int64_t width = weights_.tap_columns();
    ConvImplicitParams k = product_of(p_, phases);
    k.channels = weights_.channels();
    k.padded_channels = weights_.padded_channels();
    if (along_window(p_)) k.phases[0].taps[1] = width;  // forward: the only one
    k.weight_step[0] = phases.front().y.weight_step * width;
    k.padded_m = weights_.m();
    k.steps = k.phases[0].taps[0] * k.phases[0].taps[1] * k.padded_channels / kStep;
    return k;
  }

  int64_t tiles(const ConvImplicitParams& k) const {
    return divide_up(k.phases[0].pixels, kPixels) * (weights_.m() / sizes_.tile);
  }

  // Few tiles share their terms among work-groups, where a map is one run of pixels.
  int64_t pieces_of(const ConvImplicitParams& k) const {
    constexpr int64_t kMost = 16;
    constexpr int64_t kFewestSteps = 16;
    if (k.target_row != k.phases[0].row_pixels * k.target_column) return 1;
    if (sizes_.pieces != 0) return std::clamp<int64_t>(k.steps, 1, sizes_.pieces);
    const int64_t units = call_.caps().compute_units, work = tiles(k);
    if (work >= units) return 1;
    return std::clamp<int64_t>(2 * units / work, 1,
                               std::clamp<int64_t>(k.steps / kFewestSteps, 1, kMost));
  }

  // The pieces' sums have the order of the target, and so have neighbours that are neighbours
  // there.
  void in_pieces(ConvImplicitParams k, int64_t pieces) const {
    const bool channels_last = k.target_channel == 1;
    ConvPhase& all = k.phases[0];
    const int64_t images = p_.params.batch, results = all.pixels * k.m;
    const tb_address target = roles_.target + static_cast<uint64_t>(all.target * size_of(p_.dtype));
    matmul::Results sum{
        .types = p_.dtype,
        .batch = images,
        .m = channels_last ? all.map_pixels : k.m,
        .n = channels_last ? k.m : all.map_pixels,
        .c = {target, k.target_image, channels_last ? k.target_column : k.target_channel,
              channels_last ? 1 : k.target_column}};
    if (p_.bias) {
      sum.end.add(
          {*p_.bias, 0, channels_last ? 0 : k.bias_stride, channels_last ? k.bias_stride : 0});
    }
    k.steps = divide_up(k.steps, pieces);
    k.piece = results;
    k.target_image = all.map_pixels * k.m;
    k.target_channel = channels_last ? 1 : all.map_pixels;
    k.target_column = channels_last ? k.m : 1;
    k.target_row = all.row_pixels * k.target_column;
    const Scratch sums = call_.scratch(
        static_cast<uint64_t>(pieces * results * static_cast<int64_t>(sizeof(float))));
    launch(k, Output{sums.address(), true}, pieces);
    matmul::sum_pieces(call_, sum, pieces, sums.address());
  }

  // Rows of a work-item (TM). Twice as many items bring half as many numbers each: that pays for
  // 16-bit ones which they load and unpack one by one (H200: 0.40 ms instead of 0.50, 128 channels
  // of 56 x 56 with a stride of 2, 64 images), and costs float32 and vectors up to a fifth.
  int64_t item_rows(bool source_last) const {
    constexpr uint32_t kItems = 256;
    const bool more_items = sizes_.tile == 128 && size_of(p_.dtype) == 2 && !source_last &&
                            call_.caps().max_work_group_size >= kItems;
    return more_items ? 8 : sizes_.tile / 8;
  }

  // `count` pieces, or phases.
  void launch(const ConvImplicitParams& k, Output out, int64_t count) const {
    const std::span<const ConvPhase> phases(k.phases, static_cast<size_t>(out.pieces ? 1 : count));
    const DType result = out.pieces ? DType::Float32 : p_.dtype;
    const bool begin_whole = std::ranges::all_of(
        phases, [&](const ConvPhase& phase) { return out.pieces || phase.target % 4 == 0; });
    const bool rows_join = k.target_column == 1 && k.target_row == phases[0].row_pixels;
    const bool along_pixels =
        rows_join && begin_whole && phases[0].map_pixels % 4 == 0 &&
        whole_vectors(out.address, result, {k.target_image, k.target_channel});
    const bool along_channels =
        k.target_channel == 1 && begin_whole && k.m % 4 == 0 &&
        whole_vectors(out.address, result, {k.target_image, k.target_row, k.target_column});
    const bool source_last =
        !along_window(p_) && k.source_channel == 1 && k.channels == k.padded_channels &&
        whole_vectors(roles_.source, p_.dtype, {k.source_image, k.source_row, k.source_column});
    const int64_t rows = item_rows(source_last);
    const int64_t items = sizes_.tile / rows * (kPixels / kPixelsOfItem);
    Defines d;
    d.type(define::TYPE, p_.dtype)
        .set(define::BM, sizes_.tile)
        .set(define::TM, rows)
        .set(define::RAGGED, k.channels != k.padded_channels)
        .set(define::SOURCE_LAST, source_last)
        .set(define::ALONG_WINDOW, along_window(p_))
        .set(define::TARGET, along_pixels     ? 1
                             : along_channels ? 2
                                              : 0)
        .set(define::ADD_SELF, p_.bias.has_value() && !out.pieces)
        .set(define::PIECES, out.pieces);
    const MemoryRange whole = roles_.forward ? memory_of_small(p_) : memory_of_big(p_);
    const auto bytes = static_cast<int64_t>(sizeof(float)) * count * k.piece;
    call_
        .launch(kernels::conv::implicit::implicit, d,
                {.target = out.pieces ? MemoryRange(out.address, 0, bytes) : whole,
                 .source = roles_.forward ? memory_of_big(p_) : memory_of_small(p_),
                 .weight = weights_,
                 .bias = out.pieces ? MemoryRange(nullptr) : memory_of_bias(p_),
                 .p = k})
        .run({divide_up(most_pixels(phases), kPixels) * items, weights_.m() / sizes_.tile, count},
             {items, 1, 1});
  }

  const OpCall& call_;
  const Problem& p_;
  Roles roles_;
  Sizes sizes_;
  PackedWeights weights_;
};

Planned<Sizes> plan(const OpCall& call, const Problem& p, const Configuration& c) {
  if (const char* reason = refuse(call, p)) return reason;
  if (c.empty()) return Sizes{Roles(p).m > 64 ? 128 : 64, 0};
  if (c.size() != 2 || (c[0] != 64 && c[0] != 128)) return "no such tile";
  if (c[1] < 1 || c[1] > 256) return "no such number of pieces";
  return Sizes{c[0], c[1]};
}

// The sums of a strided convolution's data are not cut, so that few tiles leave units idle.
const char* pass_over(const OpCall& call, const Problem& p) {
  if (p.direction != Direction::Data || p.params.stride[1] * p.params.stride[2] == 1)
    return nullptr;
  const int64_t pixels = p.params.batch * divide_up(p.params.in[1], p.params.stride[1]) *
                         divide_up(p.params.in[2], p.params.stride[2]);
  const int64_t tiles = p.params.stride[1] * p.params.stride[2] * divide_up(pixels, kPixels) *
                        divide_up(Roles(p).m, int64_t{128});
  const bool few = 2 * tiles < static_cast<int64_t>(call.caps().compute_units);
  return few ? "it has too few tiles to fill the device" : nullptr;
}

Configurations space(const OpCall&, const Problem&) {
  Configurations all;
  for (const int64_t pieces : {1, 2, 4, 8, 16, 32})
    for (const int64_t tile : {64, 128}) all.push_back({tile, pieces});
  return all;
}

void run(const OpCall& call, const Problem& p, const Sizes& sizes) {
  const Run run(call, p, sizes);
  for (const std::vector<Phase>& phases : launches_of(phases_after_zeros(call, p))) run(phases);
}

}  // namespace

constinit const AlgorithmFor<Problem> kImplicit({.id = "conv.implicit",
                                                 .description = "products that gather their tiles",
                                                 .style = DeviceStyle::Gpu,
                                                 .parameters = {"tile", "pieces"}},
                                                Steps<plan, run, space>(), pass_over);

}  // namespace ocltensor::opencl::conv
