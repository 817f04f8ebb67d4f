// Chooses tiles, and cuts of k, for a product on Hopper's matrix units.
#pragma once

#include <array>
#include <cstdint>

namespace ocltensor::opencl::nvidia_hopper {

inline constexpr int64_t kMostPieces = 64;

// Columns that a tile can have.
inline constexpr std::array<int64_t, 4> kHopperColumns{256, 192, 128, 64};
inline constexpr auto kHopperColumnChoices = static_cast<int64_t>(kHopperColumns.size());

// What the choice depends on. `steps` of 128 bytes run along k; each of `units` compute units takes
// a tile at a time.
struct HopperSizes {
  int64_t batch, m, n, steps, units;
  bool bf16_parts;  // three bf16 parts: six products per step, tiles of up to 128 columns
  int64_t least_columns = 64, most_columns = 256, most_pieces = kMostPieces;
  bool has_192_columns = false;  // of the kernel's tiles
  bool operator==(const HopperSizes&) const = default;
};
struct HopperTiles {
  int64_t columns;  // of a tile of 128 rows
  int64_t pieces;   // of k, none of them empty
  bool operator==(const HopperTiles&) const = default;
};

inline constexpr int64_t kHopperRows = 128;  // BM of hopper_tile.h

// The cheapest tiles by a model in microseconds of an H200.
HopperTiles choose_hopper_tiles(const HopperSizes& sizes);

}  // namespace ocltensor::opencl::nvidia_hopper
