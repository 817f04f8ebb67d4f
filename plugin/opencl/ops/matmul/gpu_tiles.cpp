// The model by which tiles of products on GPUs, and cuts of k, are chosen.
#include "gpu_tiles.h"

#include <algorithm>
#include <array>
#include <limits>

#include "split_k_sum.h"

namespace ocltensor::opencl::matmul {
namespace {

// A tile with its figures: the part of a compute unit's multiply-adds that work-groups reach
// together, also where both operands run along k, and the microseconds that one alone takes for a
// term of its sums.
struct Modelled {
  GpuTile tile;
  double efficiency, along_k, latency;
};
// Fitted to times of 30 products on an H200 (bench/history.md). What the model chooses for these
// has been timed with each of them: figures that send it to other tiles have made a network slower.
constexpr std::array<Modelled, 6> kModelled{{
    {{128, 128, 16, 8, 16}, 0.82, 0.82, 0.093},
    {{128, 64, 16, 8, 16}, 0.69, 0.69, 0.111},
    {{64, 128, 16, 8, 16}, 0.74, 0.76, 0.182},
    {{64, 128, 8, 8, 8}, 0.755, 0.755, 0.103},
    {{64, 64, 8, 8, 16}, 0.74, 0.66, 0.112},
    {{32, 64, 4, 4, 16}, 0.52, 0.52, 0.053},
}};
constexpr double kSpeed = 0.45e6;  // floating-point operations of a compute unit in a microsecond

// Every compute unit has as many of the `count` tiles as the one that has most.
double microseconds(const Modelled& t, const Problem& p, int64_t count, int64_t pieces,
                    int64_t units) {
  constexpr double kStore = 1.3;        // of 128 x 128 results
  constexpr double kAddPieces = 17;     // another launch
  constexpr double kBandwidth = 2.7e6;  // bytes of the partial sums, written and read again
  const auto real = [](int64_t n) { return static_cast<double>(n); };
  const double rounds = real(divide_up(count * pieces, units));
  const double terms = real(divide_up(divide_up(p.k, pieces), t.tile.step) * t.tile.step);
  const double results = real(t.tile.m * t.tile.n);
  const double efficiency = p.a.col == 1 && p.b.row == 1 ? t.along_k : t.efficiency;
  double time = terms * std::max(rounds * 2 * results / (kSpeed * efficiency), t.latency) +
                rounds * kStore * results / (128 * 128);
  if (pieces > 1)
    time += kAddPieces + real(2 * pieces * p.batch * p.m * p.n * sum_bytes(p.dtype)) / kBandwidth;
  return time;
}

}  // namespace

int64_t tiles(const Problem& p, const GpuTile& t) {
  return p.batch * divide_up(p.m, t.m) * divide_up(p.n, t.n);
}

GpuPieces cut(const Problem& p, int64_t most, const GpuTile& t) {
  const int64_t length = divide_up(divide_up(p.k, most), t.step) * t.step;
  return {divide_up(p.k, length), length};
}

Planned<GpuTileChoice> choose_gpu_tile(const Capabilities& caps, const Problem& p, bool in_pieces) {
  constexpr int64_t kMostPieces = 256, kShortest = 256;  // terms of a piece
  const int64_t most = in_pieces ? std::min(kMostPieces, p.k / kShortest) : 1;
  double least = std::numeric_limits<double>::max();
  GpuTileChoice best{};
  for (const Modelled& t : kModelled) {
    if (caps.max_work_group_size < t.tile.items() ||
        caps.local_memory < static_cast<uint64_t>(t.tile.local_memory()))
      continue;
    const int64_t count = tiles(p, t.tile);
    for (int64_t pieces = 1; pieces <= std::max<int64_t>(most, 1); pieces *= 2) {
      const double time = microseconds(t, p, count, pieces, caps.compute_units);
      if (time >= least) continue;
      least = time;
      best = {t.tile, cut(p, pieces, t.tile)};
    }
  }
  if (best.tile.m == 0) return "no tile fits into a work-group and its local memory";
  return best;
}

}  // namespace ocltensor::opencl::matmul
