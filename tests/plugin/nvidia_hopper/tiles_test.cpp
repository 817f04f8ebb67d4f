// Tiles for matrix units: what the model prefers.
#include "nvidia_hopper/matmul/tiles.h"

#include <gtest/gtest.h>

#include "call/divide_up.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

constexpr int64_t kUnits = 132;

TEST(HopperTiles, LargeProductsTakeWideTilesAndWholeSums) {
  const HopperTiles wide{256, 1};
  EXPECT_EQ(choose_hopper_tiles({1, 4096, 4096, 64, kUnits, false}), wide);
  EXPECT_EQ(choose_hopper_tiles({1, 2048, 2048, 32, kUnits, false}), wide);
  const HopperTiles bf16_parts{128, 1};
  EXPECT_EQ(choose_hopper_tiles({1, 4096, 4096, 64, kUnits, true}), bf16_parts);
}

TEST(HopperTiles, FewTilesAreNarrowAndLongSumsAreCut) {
  const HopperTiles narrow{64, 1};
  EXPECT_EQ(choose_hopper_tiles({1, 1024, 1024, 16, kUnits, false}), narrow);
  EXPECT_GT(choose_hopper_tiles({1, 16, 27, 6272, kUnits, true}).pieces, 32);
}

// 128 tiles of 192 columns fill 132 units once; of 256 they leave 36 idle.
TEST(HopperTiles, ColumnsThatLeaveNoUnitIdle) {
  HopperSizes sizes{1, 4096, 768, 48, kUnits, false};
  EXPECT_NE(choose_hopper_tiles(sizes).columns, 192);
  sizes.has_192_columns = true;
  const HopperTiles fitting{192, 1};
  EXPECT_EQ(choose_hopper_tiles(sizes), fitting);
}

TEST(HopperTiles, NoPieceIsEmpty) {
  for (int64_t steps = 1; steps < 700; steps += 3)
    for (const int64_t m : {8, 129, 700})
      for (const bool bf16_parts : {false, true}) {
        const HopperSizes sizes{3, m, 200, steps, kUnits, bf16_parts};
        const HopperTiles tiles = choose_hopper_tiles(sizes);
        ASSERT_GE(tiles.pieces, 1);
        ASSERT_LE(tiles.pieces, kMostPieces);
        ASSERT_LT((tiles.pieces - 1) * divide_up(steps, tiles.pieces), steps) << steps;
      }
}

}  // namespace
}  // namespace ocltensor::opencl::nvidia_hopper
