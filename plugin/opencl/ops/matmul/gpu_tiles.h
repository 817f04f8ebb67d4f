// Tiles of products on GPUs (sgemm.cl), and the model that chooses among them.
#pragma once

#include "matmul.h"

namespace ocltensor::opencl::matmul {

// How a work-group divides the result: BM, BN, TM, TN and BK of sgemm.cl.
struct GpuTile {
  int64_t m, n, item_m, item_n;
  int64_t step = 8;  // along k
  int64_t items() const { return (m / item_m) * (n / item_n); }
  // Both buffers of both operands, whose rows may be padded.
  int64_t local_memory() const {
    return 2 * step * (m + 4 + n + 4) * static_cast<int64_t>(sizeof(float));
  }
};

// Long sums in pieces of `length` terms.
struct GpuPieces {
  int64_t count = 1;
  int64_t length = 0;
};
// About `most` pieces, whose lengths are multiples of a tile's step.
GpuPieces cut(const Problem& p, int64_t most, const GpuTile& tile);

// How many tiles the results are.
int64_t tiles(const Problem& p, const GpuTile& tile);

// Whether tiles must test what exists (EDGE of sgemm.cl).
bool has_edges(const Problem& p, const GpuTile& tile);

struct GpuTileChoice {
  GpuTile tile;
  GpuPieces pieces;
};
// The fastest by a model in microseconds of an H100, of the tiles that fit into the local memory
// and work-groups. `in_pieces`: whether sums may be cut.
Planned<GpuTileChoice> choose_gpu_tile(const Capabilities& caps, const Problem& p, bool in_pieces);

}  // namespace ocltensor::opencl::matmul
