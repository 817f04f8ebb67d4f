// The model by which tiles are chosen.
#include "tiles.h"

#include <algorithm>
#include <limits>

#include "call/divide_up.h"

namespace ocltensor::opencl::nvidia_hopper {

// Costs in microseconds, of an H200: a step of 256 columns takes 0.73, of fewer in proportion but
// no less than 0.2; a tile takes 1.5, and its results 1 for 256 columns; pieces are written and
// read again at 3 TB/s, and cost another launch (4).
HopperTiles choose_hopper_tiles(const HopperSizes& s) {
  const auto results = static_cast<double>(s.batch * s.m) * static_cast<double>(s.n);
  double lowest = std::numeric_limits<double>::max();
  HopperTiles best{s.least_columns, 1};
  for (const int64_t columns : kHopperColumns) {
    if (columns == 192 && !s.has_192_columns) continue;
    if (columns < s.least_columns || columns > (s.bf16_parts ? 128 : s.most_columns)) continue;
    const double part = static_cast<double>(columns) / 256;
    const double step = std::max(0.73 * part, 0.2) * (s.bf16_parts ? 6 : 1);
    const int64_t tiles = s.batch * divide_up(s.m, kHopperRows) * divide_up(s.n, columns);
    for (int64_t pieces = 1; pieces <= std::min(s.most_pieces, s.steps / 4 + 1); ++pieces) {
      const int64_t length = divide_up(s.steps, pieces);
      if (divide_up(s.steps, length) != pieces) continue;  // a piece would be empty
      const auto waves = static_cast<double>(divide_up(tiles * pieces, s.units));
      double cost = waves * (static_cast<double>(length) * step + 1.5 + part);
      if (pieces > 1) cost += 4 + static_cast<double>(2 * pieces) * results * 4 / 3e6;
      if (cost >= lowest) continue;
      lowest = cost;
      best = {columns, pieces};
    }
  }
  return best;
}

}  // namespace ocltensor::opencl::nvidia_hopper
