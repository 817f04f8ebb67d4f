// Which tiles, and cuts of k, the model chooses for products on GPUs.
#include "ops/matmul/gpu_tiles.h"

#include <gtest/gtest.h>

#include "fmt/format.h"

namespace ocltensor::opencl::matmul {
namespace {

// Which operands run along k.
enum class Along { Both, First, None };
Problem product(int64_t batch, int64_t m, int64_t n, int64_t k, Along along = Along::First) {
  Problem p{DType::Float32, batch, m, n, k, {}, {}, {}};
  p.a = {0, m * k, k, 1};
  if (along == Along::None) p.a = {0, m * k, 1, m};
  p.b = {0, k * n, n, 1};
  if (along == Along::Both) p.b = {0, k * n, 1, k};
  p.c = {0, m * n, n, 1};
  return p;
}
Capabilities h100() {
  Capabilities caps;
  caps.compute_units = 132;
  caps.max_work_group_size = 1024;
  caps.local_memory = 48 << 10;
  return caps;
}
// "128x64 of 16x8" (results of a work-item) or, with cut sums, "128x64 of 16x8 in 4".
std::string chosen(const Capabilities& caps, const Problem& p, bool in_pieces = true) {
  Planned<GpuTileChoice> choice = choose_gpu_tile(caps, p, in_pieces);
  if (choice.reason() != nullptr) return choice.reason();
  const GpuTileChoice& c = choice.plan();
  const std::string pieces = c.pieces.count == 1 ? "" : fmt::format(" in {}", c.pieces.count);
  const GpuTile& t = c.tile;
  return fmt::format("{}x{} of {}x{}{}", t.m, t.n, t.item_m, t.item_n, pieces);
}

// Choices that were timed, and are within 7 % of the best of all.
TEST(GpuTiles, AreThoseThatWereMeasuredAsFast) {
  const auto get = [](const Problem& p) { return chosen(h100(), p); };
  EXPECT_EQ(get(product(1, 4096, 3072, 768, Along::Both)), "128x128 of 16x8");
  EXPECT_EQ(get(product(1, 4096, 768, 768, Along::Both)), "64x128 of 8x8");
  EXPECT_EQ(get(product(1, 4096, 768, 3072, Along::Both)), "64x128 of 8x8");
  EXPECT_EQ(get(product(1, 8192, 2304, 768)), "128x128 of 8x8");
  EXPECT_EQ(get(product(1, 6304, 3072, 768, Along::Both)), "64x128 of 8x8");
  EXPECT_EQ(get(product(64, 256, 64, 3136, Along::Both)), "64x64 of 8x8 in 2");
  EXPECT_EQ(get(product(64, 64, 256, 3136, Along::Both)), "64x64 of 8x8 in 2");
  EXPECT_EQ(get(product(64, 512, 49, 2048, Along::None)), "64x64 of 8x4");
  EXPECT_EQ(get(product(64, 64, 3136, 256)), "64x64 of 8x8");
}

// Of these all tiles were timed in an earlier form of the model, but not what it chooses now.
TEST(GpuTiles, CutLongSumsOfFewTiles) {
  for (const Problem& p :
       {product(1, 2048, 512, 8192, Along::None), product(1, 512, 2048, 4096, Along::Both),
        product(1, 768, 768, 4096, Along::None)})
    EXPECT_NE(chosen(h100(), p).find(" in "), std::string::npos) << p.m << " " << p.n << " " << p.k;
  EXPECT_EQ(chosen(h100(), product(1, 8192, 512, 2048)).find(" in "), std::string::npos);
}

TEST(GpuTiles, KeepSumsWholeWhereTheyMustBe) {
  EXPECT_EQ(chosen(h100(), product(1, 768, 768, 4096, Along::None), false), "32x64 of 4x4");
}

TEST(GpuTiles, FitIntoWorkGroupsAndLocalMemory) {
  Capabilities caps = h100();
  const Problem p = product(1, 4096, 3072, 768, Along::Both);
  caps.local_memory = 16 << 10;  // 128 x 128 takes 17 KiB
  EXPECT_EQ(chosen(caps, p).find("128x128"), std::string::npos);
  caps.max_work_group_size = 64;
  EXPECT_EQ(chosen(caps, p), "no tile fits into a work-group and its local memory");
}

// No term is left out, and no piece is empty.
TEST(GpuTiles, CutsCoverTheSums) {
  for (const int64_t k : {1, 127, 128, 1000, 4096, 5001})
    for (const int64_t most : {1, 2, 8, 64}) {
      const GpuTile tile{64, 64, 8, 8, 16};
      const GpuPieces pieces = cut(product(1, 64, 64, k), most, tile);
      EXPECT_GE(pieces.count * pieces.length, k);
      EXPECT_LT((pieces.count - 1) * pieces.length, k);
      EXPECT_LE(pieces.count, most);
      EXPECT_EQ(pieces.length % tile.step, 0);
    }
}

}  // namespace
}  // namespace ocltensor::opencl::matmul
