// Convolutions on Hopper's matrix units as products: what each launch multiplies, what the tensor
// maps contain, and how tiles are chosen. It computes numbers only and needs no device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "cells.h"
#include "conv_hopper_params.h"
#include "nvidia_hopper/matmul/tiles.h"
#include "ops/conv/conv.h"

namespace ocltensor::opencl::nvidia_hopper {

// What is multiplied. Two bf16 parts have 16 bits of mantissa and take three products: a gradient
// of weights uses them for TF32, as the unit reads TF32 along k only.
enum class ConvHopperKind : uint8_t { Half, BFloat, Tf32, Bf16x2, Bf16x3 };
inline constexpr int64_t kConvHopperKinds = 5;

inline int64_t bf16_parts_of(ConvHopperKind k) {
  return k == ConvHopperKind::Bf16x3 ? 3 : k == ConvHopperKind::Bf16x2 ? 2 : 1;
}
inline int64_t item_of(ConvHopperKind k) { return k == ConvHopperKind::Tf32 ? 4 : 2; }  // bytes
inline int64_t block_of(ConvHopperKind k) { return 128 / item_of(k); }  // channels of a copy

// A problem in the kernel's form: for a window of one element with a stride the map consists of
// every stride-th element, and few channels are staged in cells.
struct ConvHopperProblem : conv::Problem {
  ConvHopperProblem(
      const conv::Problem& p);           // NOLINT(google-explicit-constructor): the same problem
  std::optional<ConvHopperCells> cells;  // then `params` are those of the window of cells
};

// How kernels/nvidia_hopper/conv/convolution.cl is specialised.
struct ConvHopperVariant {
  ConvHopperKind kind;
  int64_t columns;             // BN: 64, 128 or 256
  bool weight, partial;        // partial: for 16-bit types only
  bool bias = false;           // of a result, not of sums in pieces or of a weight's gradient
  bool channels_last = false;  // of a 16-bit result

  int64_t stages() const {
    constexpr int64_t kMost = 6, kLocalBytes = 226 * 1024 - 1024;
    return std::min(kMost, kLocalBytes / (bf16_parts_of(kind) * (kHopperRows + columns) * 128));
  }
  Defines defines() const;
  size_t index() const {
    const int64_t size = columns == 64 ? 0 : columns == 128 ? 1 : 2;
    const int64_t end = weight ? 5 : partial ? 4 : bias * 2 + channels_last;
    return static_cast<size_t>((static_cast<int64_t>(kind) * 3 + size) * 6 + end);
  }
};
inline constexpr int64_t kConvHopperVariants = kConvHopperKinds * 3 * 6;

// One dimension of a product. Position i has its window at i * stride + corner_low of the map; tap
// t is t * tap_distance further on and takes the weight's tap first_tap + t * tap_step; the result
// is element result_begin + i * result_step. The engine continues with the next row after position
// `positions` - 1, because the next window would begin after element size - 1 + corner_high.
struct ConvHopperAxis {
  int64_t positions, stride, corner_low, corner_high, taps, tap_distance, first_tap, tap_step,
      result_begin, result_step;
};
ConvHopperAxis forward_hopper_axis(const ConvParams& g, size_t d);
// For Data: elements begin, begin + stride, .. of the big map. `taps` may be 0.
ConvHopperAxis data_hopper_axis(const ConvParams& g, size_t d, int64_t begin);

// A map with windows in the engine's form, channels last: sizes, and strides in bytes. Bf16 parts
// follow each other as further images. Pixels of cells overlap: their channels are more than a
// step.
struct ConvHopperMap {
  tb_address address;
  int64_t channels, x, y, images;
  int64_t x_step, y_step, image_step;
};
// The other operand: lines of `inner` numbers, `taps` lines in a row.
struct ConvHopperLines {
  tb_address address;
  int64_t inner, rows, taps;
  int64_t row_step, tap_step, bf16_part_step;  // bytes
};

// A launch, without addresses.
struct ConvHopperProduct {
  ConvHopperAxis y, x;
  int64_t m, n, steps;
  HopperTiles tiles;
};
// The launches of a convolution.
std::vector<ConvHopperProduct> conv_hopper_products(const ConvHopperProblem& p, ConvHopperKind kind,
                                                    int64_t units);
// Whether the launches write every element of the big map; true for Forward and Weight.
bool covers_result(const ConvHopperProblem& p);

// Which limit of the engine or of 32 bits the problem exceeds, or nullptr.
const char* refuse_hopper_geometry(const ConvHopperProblem& p, ConvHopperKind kind);

// Writes the map's 128 bytes except the address, as NVIDIA's own encoder makes them: 128-byte
// swizzle, zeros outside, copies of `pixels` positions.
void write_im2col_map(tk_u32 (&words)[CONV_MAP_WORDS], const ConvHopperMap& map, int64_t bf16_parts,
                      ConvHopperKind kind, const ConvHopperAxis& y, const ConvHopperAxis& x,
                      int64_t pixels);

// The kernel's parameters, except those of the result and the bias.
ConvHopperParams conv_hopper_params(const ConvHopperProblem& p, ConvHopperKind kind,
                                    const ConvHopperProduct& product, const ConvHopperMap& map,
                                    const ConvHopperLines& lines);

}  // namespace ocltensor::opencl::nvidia_hopper
