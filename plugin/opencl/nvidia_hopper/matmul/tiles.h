// Chooses tiles, and cuts of k, for a product on Hopper's matrix units.
#pragma once

#include <cstdint>

namespace ocltensor::opencl::nvidia_hopper {

inline constexpr int64_t kMostPieces = 64;

// What the choice depends on. `steps` of 128 bytes run along k; each of `units` compute units takes
// a tile at a time.
struct HopperSizes {
  int64_t batch, m, n, steps, units;
  bool bf16_parts;  // three bf16 parts: six products per step, tiles of up to 128 columns
  int64_t least_columns = 64, most_columns = 256, most_pieces = kMostPieces;
  bool operator==(const HopperSizes&) const = default;
};
struct HopperTiles {
  int64_t columns;  // of a tile of 128 rows: 64, 128 or 256
  int64_t pieces;   // of k, none of them empty
  bool operator==(const HopperTiles&) const = default;
};

inline constexpr int64_t kHopperRows = 128;  // BM of hopper_tile.h

// The cheapest tiles by a model in microseconds of an H200.
HopperTiles choose_hopper_tiles(const HopperSizes& sizes);

}  // namespace ocltensor::opencl::nvidia_hopper
