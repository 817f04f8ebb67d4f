// Convolutions on Hopper's matrix units as products: what each launch multiplies, what the copy
// engine is told, and how tiles are chosen. Numbers only: no device is needed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "conv_hopper_params.h"
#include "nvidia_hopper/matmul/tiles.h"
#include "ops/conv/conv.h"

namespace ocltensor::opencl::nvidia_hopper {

// What is multiplied. Two bf16 parts have 16 binary digits and take three products: what a
// gradient of weights in TF32 uses, as the unit reads TF32 along k only.
enum class ConvHopperKind : uint8_t { Half, BFloat, Tf32, Bf16x2, Bf16x3 };
inline constexpr int64_t kConvHopperKinds = 5;

inline int64_t bf16_parts_of(ConvHopperKind k) {
  return k == ConvHopperKind::Bf16x3 ? 3 : k == ConvHopperKind::Bf16x2 ? 2 : 1;
}
inline int64_t item_of(ConvHopperKind k) { return k == ConvHopperKind::Tf32 ? 4 : 2; }  // bytes
inline int64_t block_of(ConvHopperKind k) { return 128 / item_of(k); }  // channels of a copy

// Few channels leave most of a copy empty. Where a window has more taps in a row, those become
// channels of a map with a pixel for each of the row's positions: tap t of channel c is channel
// t * channels + c, and pixel (y, x) has it from element x * step + low + t * delta of row y.
struct ConvHopperFold {
  int64_t taps, channels, step, low, delta, width;  // of the big tensor
};

// A problem as the kernel takes it: a window of one element with a stride reads a map of every
// stride-th element, and few channels are folded. `fold` has one tap where they are not.
struct ConvHopperProblem : conv::Problem {
  ConvHopperProblem(
      const conv::Problem& p);  // NOLINT(google-explicit-constructor): the same problem
  ConvHopperFold fold;
  bool is_folded() const { return fold.taps > 1; }
};

// How kernels/nvidia_hopper/conv/convolution.cl is specialised.
struct ConvHopperVariant {
  ConvHopperKind kind;
  int64_t columns;       // BN: 64, 128 or 256
  bool weight, partial;  // partial: of 16-bit types only

  int64_t stages() const {
    constexpr int64_t kMost = 6, kLocalBytes = 226 * 1024 - 1024;
    return std::min(kMost, kLocalBytes / (bf16_parts_of(kind) * (kHopperRows + columns) * 128));
  }
  Defines defines() const;
  size_t index() const {
    const int64_t size = columns == 64 ? 0 : columns == 128 ? 1 : 2;
    return static_cast<size_t>((static_cast<int64_t>(kind) * 3 + size) * 3 + (weight    ? 2
                                                                              : partial ? 1
                                                                                        : 0));
  }
};
inline constexpr int64_t kConvHopperVariants = kConvHopperKinds * 3 * 3;

// One dimension of a product. Position i has its window at i * stride + low of the map, tap t lies
// t * delta further on and is the weight's first + t * step; the result is element begin + i *
// spread. The engine moves on to the next row after position `positions` - 1: where the next one
// would begin beyond element size - 1 + high.
struct ConvHopperAxis {
  int64_t positions, stride, low, high, taps, delta, first, step, begin, spread;
};
ConvHopperAxis forward_hopper_axis(const ConvParams& g, size_t d);
// Data: elements begin, begin + stride, .. of the big map. `taps` may be 0.
ConvHopperAxis data_hopper_axis(const ConvParams& g, size_t d, int64_t begin);

// A map with windows as the engine reads it, channels last: sizes, and strides in bytes. Bf16Parts
// lie behind each other as further images.
struct ConvHopperMap {
  tb_address address;
  int64_t channels, x, y, images;
  int64_t x_step, y_step, image_step;
};
// The other operand: `inner` numbers in a line, `taps` lines of a row.
struct ConvHopperLines {
  tb_address address;
  int64_t inner, rows, taps;
  int64_t row_step, tap_step, bf16_part_step;  // bytes
};

// A launch without its memory.
struct ConvHopperProduct {
  ConvHopperAxis y, x;
  int64_t m, n, steps;
  HopperTiles tiles;
};
// The launches of a convolution.
std::vector<ConvHopperProduct> conv_hopper_products(const ConvHopperProblem& p, ConvHopperKind kind,
                                                    int64_t units);
// Do they cover every element of the big map? Forward and Weight: yes.
bool covers_result(const ConvHopperProblem& p);

// The limits of the engine and of 32 bits: nullptr, or which is passed.
const char* refuse_hopper_geometry(const ConvHopperProblem& p, ConvHopperKind kind);

// The map's 128 bytes but for its address, read off NVIDIA's own encoder: 128-byte swizzle, zeros
// outside. Copies of `pixels` positions.
void write_im2col_map(tk_u32 (&words)[CONV_MAP_WORDS], const ConvHopperMap& map, int64_t bf16_parts,
                      ConvHopperKind kind, const ConvHopperAxis& y, const ConvHopperAxis& x,
                      int64_t pixels);

// The kernel's parameters, but for those of the result and the bias.
ConvHopperParams conv_hopper_params(const ConvHopperProblem& p, ConvHopperKind kind,
                                    const ConvHopperProduct& product, const ConvHopperMap& map,
                                    const ConvHopperLines& lines);

}  // namespace ocltensor::opencl::nvidia_hopper
