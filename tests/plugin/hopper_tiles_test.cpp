// Tiles for matrix units: what the model prefers, and that a remembered choice is the choice.
#include "ops/matmul/hopper_tiles.h"

#include <gtest/gtest.h>

#include <thread>

#include "call/divide_up.h"

namespace ocltensor::opencl {
namespace {

constexpr int64_t kUnits = 132;

TEST(HopperTiles, LargeProductsTakeWideTilesAndWholeSums) {
  const HopperTiles wide{256, 1};
  EXPECT_EQ(choose_hopper_tiles({1, 4096, 4096, 64, kUnits, false}), wide);
  EXPECT_EQ(choose_hopper_tiles({1, 2048, 2048, 32, kUnits, false}), wide);
  const HopperTiles planes{128, 1};
  EXPECT_EQ(choose_hopper_tiles({1, 4096, 4096, 64, kUnits, true}), planes);
}

TEST(HopperTiles, FewTilesAreNarrowAndLongSumsAreCut) {
  const HopperTiles narrow{64, 1};
  EXPECT_EQ(choose_hopper_tiles({1, 1024, 1024, 16, kUnits, false}), narrow);
  EXPECT_GT(choose_hopper_tiles({1, 16, 27, 6272, kUnits, true}).pieces, 32);
}

TEST(HopperTiles, NoPieceIsEmptyAndNothingIsForgottenWrongly) {
  for (int64_t steps = 1; steps < 700; steps += 3)
    for (const int64_t m : {8, 129, 700})
      for (const bool planes : {false, true}) {
        const HopperSizes sizes{3, m, 200, steps, kUnits, planes};
        const HopperTiles tiles = choose_hopper_tiles(sizes);
        ASSERT_GE(tiles.pieces, 1);
        ASSERT_LE(tiles.pieces, kMostPieces);
        ASSERT_LT((tiles.pieces - 1) * divide_up(steps, tiles.pieces), steps) << steps;
        HopperTiles fresh{};
        if (steps % 60 == 1) {  // a thread of its own remembers nothing
          std::thread([&] { fresh = choose_hopper_tiles(sizes); }).join();
          ASSERT_EQ(fresh, choose_hopper_tiles(sizes));
        }
        ASSERT_EQ(tiles, choose_hopper_tiles(sizes));
      }
}

}  // namespace
}  // namespace ocltensor::opencl
