// The model by which tiles are chosen.
#include "tiles.h"

#include <algorithm>
#include <limits>

#include "call/divide_up.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

// Floating-point operations of a compute unit in a microsecond, at the matrix units' speed that
// mma.sync reaches on an H200 (132 units: 415, 197 and 62 TFLOP/s; int8: twice that of 16 bits).
double speed_of(MmaKind kind) {
  switch (kind) {
    case MmaKind::Tf32: return 1.5e6;
    case MmaKind::Tf32x3: return 0.47e6;
    case MmaKind::Int8: return 6.2e6;
    default: return 3.1e6;
  }
}

// Microseconds of a compute unit for `groups` work-groups at once, each with `buffers` of k.
double time_of(const MmaTile& t, MmaKind kind, int64_t groups, int64_t buffers) {
  constexpr double kBeginAndEnd = 2;
  if (groups == 0) return 0;
  const auto work = static_cast<double>(groups * 2 * t.rows * t.columns * t.step(kind));
  const double slower = kind == MmaKind::Tf32x3 ? 3 : 1;  // a work-group alone, too
  const double step = std::max(work / (speed_of(kind) * t.efficiency), slower * t.latency);
  return static_cast<double>(buffers) * step + kBeginAndEnd;
}

}  // namespace

uint32_t usable_tiles(MmaKind kind, int64_t generation, int64_t local_memory) {
  uint32_t usable = 0;
  for (size_t i = 0; i < kMmaTiles.size(); ++i) {
    const MmaTile& tile = kMmaTiles[i];
    if (takes_tile(kind, generation, tile) && tile.local_memory(generation) <= local_memory)
      usable |= 1u << i;
  }
  return usable;
}

// Pieces are written and read again at 3 TB/s, and cost another launch (4).
MmaTiles choose_mma_tiles(const MmaSizes& s) {
  constexpr int64_t kLeastBuffers = 4;  // of a piece
  const auto results = static_cast<double>(s.batch * s.m) * static_cast<double>(s.n);
  double lowest = std::numeric_limits<double>::max();
  MmaTiles best{0, 1};
  for (size_t i = 0; i < kMmaTiles.size(); ++i) {
    if ((s.usable >> i & 1) == 0) continue;
    const MmaTile& t = kMmaTiles[i];
    const int64_t buffers = divide_up(s.k, t.step(s.kind));
    const int64_t tiles = s.batch * divide_up(s.m, t.rows) * divide_up(s.n, t.columns);
    const int64_t most = std::min(s.most_pieces, std::max<int64_t>(buffers / kLeastBuffers, 1));
    for (int64_t pieces = 1; pieces <= most; ++pieces) {
      if (pieces > 1 && tiles * pieces > 2 * s.units * t.together) break;  // full without
      const int64_t length = divide_up(buffers, pieces);
      if (divide_up(buffers, length) != pieces) continue;  // a piece would be empty
      const int64_t of_unit = divide_up(tiles * pieces, s.units);
      const int64_t full_rounds = of_unit / t.together;
      double cost = static_cast<double>(full_rounds) * time_of(t, s.kind, t.together, length) +
                    time_of(t, s.kind, of_unit % t.together, length);
      if (pieces > 1) cost += 4 + static_cast<double>(2 * pieces) * results * 4 / 3e6;
      if (cost >= lowest) continue;
      lowest = cost;
      best = {i, pieces};
    }
  }
  return best;
}

}  // namespace ocltensor::opencl::nvidia_mma
