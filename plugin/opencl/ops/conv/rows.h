// What the convolutions for CPU drivers share: padded float copies of maps, work division.
#pragma once

#include <algorithm>
#include <vector>

#include "call/divide_up.h"
#include "conv.h"
#include "conv_rows_params.h"
#include "phases.h"

namespace ocltensor::opencl::conv {

// A float32 map with contiguous columns, surrounded by a border of zeros.
struct PaddedMap {
  std::vector<Scratch> memory;  // empty where the map itself can be read
  tb_address address;
  int64_t low, high;            // bytes around the address
  int64_t origin;               // elements from the address to element (0, 0), border not counted
  int64_t image, channel, row;  // strides
  operator MemoryRange() const { return {address, low, high}; }  // NOLINT: implicit on purpose
};
// The rows or columns [low, high] that a convolution reads; those outside of the map are zeros.
struct Reach {
  int64_t low, high;
};
Reach reach(const Axis& a);
// Widens it by what an axis reads whose outputs are computed in whole pieces.
void widen(Reach& reach, const Axis& a, int64_t piece);

struct PadRequest {
  bool is_big;  // the problem's big tensor, else the small one
  Reach y, x;
  int64_t overrun = 0;                 // elements past the end that may be read, with any values
  int64_t spread_y = 1, spread_x = 1;  // distance of elements; zeros lie between
};
PaddedMap pad_map(const OpCall& call, const Problem& p, const PadRequest& request);

// Parts of a launch's parameters: how a padded map is read, after the numbers of channels are set,
// and the strides of the map that is written or packed.
void set_input(ConvRowsParams& q, const PaddedMap& map, const Axis& y, const Axis& x);
void set_output(ConvRowsParams& q, const tk_i64 (&strides)[5]);
// The parameters of a gradient of weights, but for what divides the work.
ConvRowsParams gradient_params(const ConvParams& g, const PaddedMap& map, const Axis& y,
                               const Axis& x);
// The parameters of a forward or data direction's launch: strides, sizes, starts and bias; what
// divides the work is left to the algorithm.
ConvRowsParams rows_params(const Problem& p, const Phase& phase, const PaddedMap& map);

// How direct.cpp divides its work; 0: by rule.
struct DirectSizes {
  int64_t run = 0;    // tiles of a work-item
  int64_t terms = 0;  // whose weights are packed at once
  int64_t inner = 0;  // 1: work-items that follow each other have other output channels, 2: tiles
};
// direct.cpp: one launch; the map reaches as far as whole pieces of this many columns. It runs only
// if the guard's word has its value.
constexpr int64_t kDirectColumns = 7;
void run_direct(const OpCall& call, const Problem& p, const Phase& phase, const PaddedMap& map,
                const matmul::Guard& guard, const DirectSizes& sizes = {});

inline int64_t work_items(const OpCall& call) {
  return 12 * static_cast<int64_t>(call.caps().compute_units);
}

}  // namespace ocltensor::opencl::conv
