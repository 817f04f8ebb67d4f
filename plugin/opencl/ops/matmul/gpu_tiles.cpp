// The model by which tiles of products on GPUs, and cuts of k, are chosen.
#include "gpu_tiles.h"

#include <algorithm>
#include <array>
#include <limits>

#include "split_k_sum.h"

namespace ocltensor::opencl::matmul {
namespace {

// The part of a compute unit's multiply-adds that work-groups reach together, by how many operands
// run along k: such numbers are stored one by one to local memory.
struct Efficiency {
  double both, one, none;
};
// The microseconds that one tile alone takes for a term of its sums, by where the operands come
// from.
struct Latency {
  double cache, memory;
};
struct Modelled {
  GpuTile tile;
  Efficiency float32, half;
  Latency latency;
  double with_edges;  // the part of this efficiency that is left where `has_edges`
};
// Fitted to times of 41 products on an H200, each in up to four orders and two types
// (bench/history.md).
constexpr std::array<Modelled, 6> kModelled{{
    {{128, 128, 8, 8, 8}, {0.74, 0.82, 0.84}, {0.80, 0.83, 0.85}, {0.095, 0.108}, 1},
    {{128, 128, 16, 8, 16}, {0.78, 0.75, 0.78}, {0.74, 0.77, 0.79}, {0.103, 0.116}, 0.88},
    {{64, 128, 8, 8, 8}, {0.73, 0.77, 0.81}, {0.75, 0.79, 0.82}, {0.066, 0.105}, 1},
    {{64, 64, 8, 4, 16}, {0.66, 0.69, 0.76}, {0.69, 0.72, 0.73}, {0.052, 0.080}, 1},
    {{64, 64, 8, 8, 16}, {0.71, 0.77, 0.72}, {0.69, 0.79, 0.82}, {0.056, 0.094}, 0.8},
    {{32, 64, 4, 4, 16}, {0.48, 0.51, 0.55}, {0.51, 0.55, 0.58}, {0.030, 0.050}, 1},
}};
constexpr double kSpeed = 0.45e6;  // floating-point operations of a compute unit in a microsecond

// Whether the operands are more than the device's last cache, whose size no driver tells, is likely
// to keep.
bool come_from_memory(const Problem& p) {
  constexpr int64_t kCache = 32 << 20;
  const auto elements = [&p](const Matrix& m, int64_t rows) {
    return (m.batch == 0 ? 1 : p.batch) * rows * p.k;
  };
  return (elements(p.a, p.m) + elements(p.b, p.n)) * size_of(p.type()) > kCache;
}

double efficiency_of(const Modelled& t, const Problem& p) {
  const Efficiency& reached = size_of(p.type()) == 2 ? t.half : t.float32;
  const bool a_along_k = p.a.col == 1, b_along_k = p.b.row == 1;
  const double inside = a_along_k && b_along_k   ? reached.both
                        : a_along_k || b_along_k ? reached.one
                                                 : reached.none;
  return has_edges(p, t.tile) ? inside * t.with_edges : inside;
}

// A tile's figures for a problem.
struct Pace {
  double efficiency, latency;
};
// Every compute unit has as many of the `count` tiles as the one that has most.
double microseconds(const GpuTile& t, const Pace& pace, const Problem& p, int64_t count,
                    int64_t pieces, int64_t units) {
  constexpr double kStore = 1.3;        // of 128 x 128 results
  constexpr double kAddPieces = 17;     // another launch
  constexpr double kBandwidth = 2.7e6;  // bytes of the partial sums, written and read again
  const auto real = [](int64_t n) { return static_cast<double>(n); };
  const double rounds = real(divide_up(count * pieces, units));
  const double terms = real(divide_up(divide_up(p.k, pieces), t.step) * t.step);
  const double results = real(t.m * t.n);
  double time = terms * std::max(rounds * 2 * results / (kSpeed * pace.efficiency), pace.latency) +
                rounds * kStore * results / (128 * 128);
  if (pieces > 1)
    time += kAddPieces + real(2 * pieces * p.batch * p.m * p.n * sum_bytes(p.type())) / kBandwidth;
  return time;
}

}  // namespace

int64_t tiles(const Problem& p, const GpuTile& t) {
  return p.batch * divide_up(p.m, t.m) * divide_up(p.n, t.n);
}

bool has_edges(const Problem& p, const GpuTile& t) {
  // Edge tiles overlap their neighbours: where `self` is the result itself, they would read
  // elements that a neighbour has already changed.
  const bool full_self = p.end.self && p.end.self->row != 0 && p.end.self->col != 0;
  if (full_self && (p.m % t.m != 0 || p.n % t.n != 0)) return true;
  return p.m < t.m || p.n < t.n || p.k % t.step != 0;
}

GpuPieces cut(const Problem& p, int64_t most, const GpuTile& t) {
  const int64_t length = divide_up(divide_up(p.k, most), t.step) * t.step;
  return {divide_up(p.k, length), length};
}

Planned<GpuTileChoice> choose_gpu_tile(const Capabilities& caps, const Problem& p, bool in_pieces) {
  constexpr int64_t kMostPieces = 256, kShortest = 256;  // terms of a piece
  const int64_t most = in_pieces ? std::min(kMostPieces, p.k / kShortest) : 1;
  const bool from_memory = come_from_memory(p);
  double least = std::numeric_limits<double>::max();
  GpuTileChoice best{};
  for (const Modelled& t : kModelled) {
    if (caps.max_work_group_size < t.tile.items() ||
        caps.local_memory < static_cast<uint64_t>(t.tile.local_memory()))
      continue;
    const int64_t count = tiles(p, t.tile);
    const Pace pace{efficiency_of(t, p), from_memory ? t.latency.memory : t.latency.cache};
    for (int64_t pieces = 1; pieces <= std::max<int64_t>(most, 1); pieces *= 2) {
      const double time = microseconds(t.tile, pace, p, count, pieces, caps.compute_units);
      if (time >= least) continue;
      least = time;
      best = {t.tile, cut(p, pieces, t.tile)};
    }
  }
  if (best.tile.m == 0) return "no tile fits into a work-group and its local memory";
  return best;
}

}  // namespace ocltensor::opencl::matmul
