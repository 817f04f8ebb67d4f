// Shapes, strides and loop nests.
#include "ocltensor/dims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/iteration.h"

namespace ocltensor {
namespace {

using ::testing::HasSubstr;

TEST(Dims, InsertEraseAndCapacity) {
  Dims d{2, 3, 5};
  d.insert(1, 7);
  EXPECT_EQ(d, (Dims{2, 7, 3, 5}));
  d.erase(0);
  EXPECT_EQ(d, (Dims{7, 3, 5}));
  Dims full(Dims::kMost, 1);
  EXPECT_THROW(full.push_back(1), Error);
}

TEST(Dims, CopiesAndMovesOfEachLength) {
  for (const size_t from : {size_t{0}, size_t{7}, size_t{8}, size_t{9}, Dims::kMost})
    for (const size_t to : {size_t{0}, size_t{8}, size_t{9}, Dims::kMost}) {
      Dims source;
      for (size_t i = 0; i < from; ++i) source.push_back(static_cast<int64_t>(3 * i + 1));
      const Dims copy = source;
      EXPECT_EQ(copy, source);
      Dims target(to, -1);
      target = source;
      EXPECT_EQ(target, copy);
      Dims moved(to, -1);
      moved = std::move(source);
      EXPECT_EQ(moved, copy);
      source = copy;  // may be used again
      EXPECT_EQ(Dims(std::move(moved)), source);
      if (from == Dims::kMost) continue;
      target.insert(from / 2, 5);
      target.erase(from / 2);
      EXPECT_EQ(target, copy);
    }
}

TEST(Dims, NumelCountsEmptyAndRefusesOverflow) {
  EXPECT_EQ(numel(Dims{}), 1);
  EXPECT_EQ(numel(Dims{2, 0, 3}), 0);
  EXPECT_EQ(numel(Dims{int64_t{1} << 40, int64_t{1} << 40, 0}), 0);
  EXPECT_THROW(numel(Dims{int64_t{1} << 40, int64_t{1} << 40}), Error);
  EXPECT_THROW(numel(Dims{2, -1}), Error);
}

TEST(Dims, ContiguityIgnoresSizeOneAndEmpty) {
  EXPECT_EQ(contiguous_strides(Dims{2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_TRUE(is_contiguous(Dims{2, 1, 4}, Dims{4, 99, 1}));
  EXPECT_TRUE(is_contiguous(Dims{0, 3}, Dims{1, 7}));
  EXPECT_FALSE(is_contiguous(Dims{2, 3}, Dims{1, 2}));
  EXPECT_FALSE(is_contiguous(Dims{2, 3}, Dims{-3, 1}));
}

TEST(Dims, Broadcast) {
  EXPECT_EQ(broadcast(Dims{3, 1}, Dims{4}), (Dims{3, 4}));
  EXPECT_EQ(broadcast(Dims{}, Dims{2, 3}), (Dims{2, 3}));
  EXPECT_EQ(broadcast(Dims{0}, Dims{5, 1}), (Dims{5, 0}));
  EXPECT_THROW(broadcast(Dims{2}, Dims{3}), Error);
  EXPECT_THROW(broadcast(Dims{0}, Dims{2}), Error);
  EXPECT_EQ(broadcast(Dims{2, 1}, Dims{0}), (Dims{2, 0}));
  try {
    broadcast(Dims{5}, Dims{2, 4});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("tensor a (5) must match the size of tensor b (4) at "
                                    "non-singleton dimension 1; the shapes are [5] and [2, 4]"));
  }
  EXPECT_EQ(broadcast_strides(Dims{3, 1}, Dims{5, 1}, Dims{2, 3, 4}), (Dims{0, 5, 0}));
}

TEST(Dims, WrapExtentOverlap) {
  EXPECT_EQ(wrap_dim(-1, 3), 2);
  EXPECT_EQ(wrap_dim(-1, 0), 0);
  EXPECT_THROW(wrap_dim(3, 3), Error);
  EXPECT_THROW(wrap_dim(-4, 3), Error);
  const Extent e = extent(Dims{3, 4}, Dims{-4, 1});
  EXPECT_EQ(e.low, -8);
  EXPECT_EQ(e.high, 4);
  EXPECT_TRUE(has_internal_overlap(Dims{2, 3}, Dims{0, 1}));
  EXPECT_FALSE(has_internal_overlap(Dims{1, 3}, Dims{0, 1}));
}

// Offsets of every element of one operand, in the space's order.
std::multiset<int64_t> offsets(const IterationSpace& space, size_t operand) {
  std::multiset<int64_t> result;
  for (int64_t i = 0; i < space.numel; ++i) {
    int64_t rest = i, at = 0;
    for (size_t d = 0; d < space.rank(); ++d) {
      at += rest % space.sizes[d] * space.strides[operand][d];
      rest /= space.sizes[d];
    }
    result.insert(at);
  }
  return result;
}

TEST(Iteration, MergesWhatAllOperandsStepThroughEvenly) {
  const Dims shape{2, 3, 4};
  const IterationSpace s = make_iteration(shape, std::vector<Dims>{{12, 4, 1}, {12, 4, 1}});
  EXPECT_EQ(s.rank(), 1u);
  EXPECT_EQ(s.sizes[0], 24);
}

TEST(Iteration, VisitsEveryElementOnce) {
  const Dims shape{2, 1, 3, 4};
  // a transposed output, a row that repeats, a flipped operand
  const std::vector<Dims> strides{{1, 0, 2, 6}, {0, 0, 0, 1}, {-12, 3, -4, -1}};
  const IterationSpace s = make_iteration(shape, strides);
  EXPECT_EQ(s.numel, 24);
  for (size_t k = 0; k < 3; ++k) {
    std::multiset<int64_t> expected;
    for (int64_t a = 0; a < 2; ++a)
      for (int64_t c = 0; c < 3; ++c)
        for (int64_t d = 0; d < 4; ++d)
          expected.insert(a * strides[k][0] + c * strides[k][2] + d * strides[k][3]);
    EXPECT_EQ(offsets(s, k), expected) << "operand " << k;
  }
}

TEST(Layouts, DenseOnesFillTheirExtent) {
  const auto dense = [](const Dims& sizes, const Dims& strides) {
    return is_dense({sizes, strides});
  };
  EXPECT_TRUE(dense({}, {}));
  EXPECT_TRUE(dense({2, 3, 4}, {12, 4, 1}));
  EXPECT_TRUE(dense({2, 3, 4}, {3, 1, 6}));
  EXPECT_TRUE(dense({2, 1, 4}, {4, 77, 1}));
  EXPECT_TRUE(dense({2, 3}, {-3, 1}));
  EXPECT_TRUE(dense({0, 3}, {7, 5}));
  EXPECT_FALSE(dense({2, 3}, {4, 1}));
  EXPECT_FALSE(dense({2, 3}, {0, 1}));
  EXPECT_FALSE(dense({2, 2}, {1, 1}));
  EXPECT_FALSE(dense({4}, {2}));
}

TEST(Layouts, FlatOnesAreContiguousAndOfOneShape) {
  const Dims sizes{2, 3}, strides{3, 1}, transposed{1, 2}, other{3, 2}, others{2, 1};
  const auto flat = [](std::initializer_list<Strided> list) { return is_flat(std::vector(list)); };
  EXPECT_TRUE(flat({{sizes, strides}, {sizes, strides}}));
  EXPECT_FALSE(flat({{sizes, strides}, {sizes, transposed}}));
  EXPECT_FALSE(flat({{sizes, transposed}, {sizes, transposed}}));
  EXPECT_FALSE(flat({{sizes, strides}, {other, others}}));
  EXPECT_FALSE(flat({{sizes, strides}, {Dims{3}, Dims{1}}}));
}

TEST(Layouts, NegativeStridesAreNotThoseOfNewResults) {
  const Dims sizes{2, 3}, strides{-1, 2};
  const Strided flipped{sizes, strides};
  EXPECT_EQ(elementwise_strides(sizes, std::vector{flipped, flipped}), (Dims{1, 2}));
}

TEST(Iteration, ScalarsAndEmpty) {
  EXPECT_EQ(make_iteration(Dims{}, std::vector<Dims>{{}}).numel, 1);
  EXPECT_EQ(make_iteration(Dims{3, 0}, std::vector<Dims>{{1, 1}}).numel, 0);
}

}  // namespace
}  // namespace ocltensor
