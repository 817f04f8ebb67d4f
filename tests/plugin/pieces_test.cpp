// The order in which pieces are filled and emptied.
#include "runtime/queue/pieces.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace ocltensor::opencl {
namespace {

// "+0:4 -0:4": a piece of 4 bytes at 0 begins to be filled, and is emptied.
std::string passed(uint64_t bytes, const PieceOrder& order) {
  std::string told;
  pass_in_pieces(
      bytes, order,
      [&](uint64_t at, uint64_t count) {
        const std::string piece = fmt::format("{}:{}", at, count);
        told += "+" + piece + " ";
        return piece;
      },
      [&](const std::string& piece) { told += "-" + piece + " "; });
  return told;
}

TEST(Pieces, AreEmptiedInTheirOrderWhileTheNextOnesAreFilled) {
  EXPECT_EQ(passed(0, {4, 2}), "");
  EXPECT_EQ(passed(3, {4, 2}), "+0:3 -0:3 ");
  EXPECT_EQ(passed(4, {4, 2}), "+0:4 -0:4 ");
  EXPECT_EQ(passed(10, {4, 1}), "+0:4 -0:4 +4:4 -4:4 +8:2 -8:2 ");
  EXPECT_EQ(passed(10, {4, 2}), "+0:4 +4:4 -0:4 +8:2 -4:4 -8:2 ");
  EXPECT_EQ(passed(9, {2, 3}), "+0:2 +2:2 +4:2 -0:2 +6:2 -2:2 +8:1 -4:2 -6:2 -8:1 ");
}

TEST(Pieces, EndWithWhatIsThrown) {
  int filled = 0, emptied = 0;
  EXPECT_THROW(pass_in_pieces(
                   100, {10, 2}, [&](uint64_t, uint64_t) { return filled++; },
                   [&](int) {
                     if (emptied++ == 3) throw std::runtime_error("the device is gone");
                   }),
               std::runtime_error);
  EXPECT_EQ(filled, 5);
  EXPECT_EQ(emptied, 4);
}

}  // namespace
}  // namespace ocltensor::opencl
