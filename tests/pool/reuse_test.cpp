// Blocks: rounding, splitting, coalescing, and which stream may reuse what and when.
#include <gmock/gmock.h>

#include <random>

#include "fakes.h"

namespace ocltensor::runtime {
namespace {

class Reuse : public PoolTest {};

TEST_F(Reuse, BlocksAreAlignedPaddedAndHardlyWasteful) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    uint64_t bytes = uint64_t{1} << (random() % 28);
    if (i % 3 != 0) bytes += random() % bytes;
    const tb_address address = pool->allocate(bytes, 0);
    const BlockInfo info = pool->info(address);
    EXPECT_EQ(address % 512, 0u);
    EXPECT_EQ(info.base, address);
    EXPECT_EQ(info.requested, bytes);
    EXPECT_GT(info.bytes, bytes);
    // 1/32 of rounding, 512 of padding, and a remainder too small for a block.
    EXPECT_LE(info.bytes, bytes + bytes / 32 + 512 + (bytes > kMebi ? 64 * kKibi : 0));
    EXPECT_EQ(info.offset, address - space.resolve(address).base);
    pool->free(address, 0);
  }
}

TEST_F(Reuse, TheBlockFreedLastIsTakenAgainByItsStreamAlone) {
  const tb_address a = pool->allocate(4 * kKibi, 0), b = pool->allocate(4 * kKibi, 0);
  clock.enqueue(0);
  pool->free(a, 0);
  EXPECT_NE(pool->allocate(4 * kKibi, 1), a);
  EXPECT_EQ(pool->allocate(4 * kKibi, 0), a);
  pool->free(a, 0);
  EXPECT_THROW(pool->free(a, 0), Error);
  EXPECT_THROW(pool->record_use(a, 1), Error);
  EXPECT_THROW((void)pool->info(a), Error);
  pool->free(b, 0);
  pool->verify();
  EXPECT_EQ(pool->allocate(8 * kKibi + 512, 0), a);  // both have become one block
  pool->verify();
}

TEST_F(Reuse, NothingIsNothing) {
  EXPECT_EQ(pool->allocate(0, 0), 0u);
  pool->free(0, 0);
  pool->record_use(0, 1);
  EXPECT_EQ(source.creates, 0);
}

TEST_F(Reuse, SegmentSizesFollowTheRequest) {
  pool->allocate(1, 0);
  pool->allocate(kMebi, 0);
  EXPECT_THAT(source.created, testing::ElementsAre(8 * kMebi));
  pool->allocate(kMebi + 1, 0);
  pool->allocate(9 * kMebi, 0);
  EXPECT_THAT(source.created, testing::ElementsAre(8 * kMebi, 32 * kMebi));
  pool->allocate(100 * kMebi, 0);
  EXPECT_EQ(source.created.back(), 102 * kMebi);
  pool->verify();
}

TEST_F(Reuse, OnePastTheEndIsNeverTheStartOfAnother) {
  std::vector<tb_address> starts;
  for (int i = 0; i < 200; ++i) starts.push_back(pool->allocate(512 * (i % 40 + 1), 0));
  for (size_t i = 0; i < starts.size(); ++i) {
    const tb_address end = starts[i] + 512 * (i % 40 + 1);
    EXPECT_THAT(starts, testing::Not(testing::Contains(end)));
    EXPECT_EQ(pool->info(end).base, starts[i]);
    EXPECT_EQ(space.resolve(end).segment, space.resolve(starts[i]).segment);
  }
}

TEST_F(Reuse, FreeNeighboursCoalesceWhateverTheOrder) {
  for (const std::vector<int>& order : std::vector<std::vector<int>>{
           {0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3, 0, 2}, {2, 0, 3, 1}}) {
    std::vector<tb_address> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(pool->allocate(7 * kMebi, 0));
    EXPECT_EQ(source.live.size(), 1u);
    for (const int i : order) {
      clock.enqueue(0);
      pool->free(blocks[i], 0);
      pool->verify();
    }
    const tb_address all = pool->allocate(9 * kMebi, 0);
    const tb_address rest = pool->allocate(9 * kMebi, 0);
    EXPECT_EQ(source.live.size(), 1u) << "two of 9 MiB fit where four of 7 MiB were";
    pool->free(all, 0);
    pool->free(rest, 0);
  }
}

TEST_F(Reuse, BestFitTakesTheSmallestHole) {
  const tb_address a = pool->allocate(600 * kKibi, 0);
  pool->allocate(1, 0);
  const tb_address b = pool->allocate(300 * kKibi, 0);
  pool->allocate(1, 0);
  pool->free(a, 0);
  pool->free(b, 0);
  EXPECT_EQ(pool->allocate(290 * kKibi, 0), b);
  EXPECT_EQ(pool->allocate(400 * kKibi, 0), a);
}

TEST_F(Reuse, TheSameStreamReusesAtOnceAndAsksNobody) {
  const tb_address first = pool->allocate(5000, 3);
  const int creates = source.creates;
  clock.asked = 0;
  for (int i = 0; i < 10; ++i) {
    clock.enqueue(3);  // never finishes
    pool->free(first, 3);
    EXPECT_EQ(pool->allocate(5000, 3), first);
  }
  EXPECT_EQ(clock.asked, 0);
  EXPECT_EQ(source.creates, creates);
}

TEST_F(Reuse, AnotherStreamWaitsForTheTicket) {
  const tb_address first = pool->allocate(20 * kMebi, 1);
  clock.enqueue(1);
  pool->free(first, 1);
  const tb_address second = pool->allocate(20 * kMebi, 2);
  EXPECT_NE(second, first) << "stream 1 still works on it";
  clock.enqueue(1);  // later work does not matter
  clock.finished[1] = 1;
  EXPECT_EQ(pool->allocate(20 * kMebi, 2), first);
  EXPECT_EQ(clock.waits, 0);
}

TEST_F(Reuse, NeighboursOfTwoStreamsMergeOnceBothHavePassed) {
  const tb_address a = pool->allocate(3 * kMebi, 1);
  const tb_address b = pool->allocate(3 * kMebi, 2);
  const tb_address c = pool->allocate(3 * kMebi, 1);
  for (int i = 0; i < 2; ++i) pool->allocate(9 * kMebi, 1);
  ASSERT_EQ(source.live.size(), 1u);
  for (const StreamId stream : {1, 2}) clock.enqueue(stream);
  pool->free(a, 1);
  pool->free(b, 2);
  pool->free(c, 1);
  pool->verify();
  EXPECT_NE(space.resolve(pool->allocate(9 * kMebi, 1)).base, space.resolve(a).base);
  clock.finish(2);
  const tb_address apart = pool->allocate(9 * kMebi, 1);
  EXPECT_NE(apart, a) << "a hit in the new segment asks nobody";
  pool->allocate(9 * kMebi, 1);
  EXPECT_EQ(pool->allocate(9 * kMebi, 1), a)
      << "a and c are stream 1's own, b is done: one block of 9 MiB";
  EXPECT_EQ(source.creates, 2);
}

TEST_F(Reuse, RecordedStreamsHoldTheBlockBack) {
  const tb_address first = pool->allocate(20 * kMebi, 0);
  pool->record_use(first, 1);
  pool->record_use(first, 2);
  pool->record_use(first, 2);
  pool->record_use(first, 0);
  for (const StreamId stream : {0, 1, 2}) clock.enqueue(stream);
  pool->free(first, 0);
  EXPECT_EQ(stats().allocated_bytes.current, 0);
  EXPECT_GT(stats().active_bytes.current, 0);
  pool->verify();
  clock.finish(1);
  EXPECT_NE(pool->allocate(20 * kMebi, 0), first);
  clock.enqueue(2);  // after the free: does not matter
  clock.finished[2] = 1;
  EXPECT_EQ(pool->allocate(20 * kMebi, 0), first);
}

TEST_F(Reuse, RecordedUseEndsWithTheAllocation) {
  const tb_address first = pool->allocate(20 * kMebi, 0);
  pool->record_use(first, 1);
  pool->free(first, 0);
  ASSERT_EQ(pool->allocate(20 * kMebi, 0), first);
  clock.enqueue(1);
  pool->free(first, 0);
  EXPECT_EQ(pool->allocate(20 * kMebi, 0), first);
}

TEST_F(Reuse, FreeOnAForeignStreamWaitsForThatStream) {
  const tb_address first = pool->allocate(20 * kMebi, 0);
  clock.enqueue(5);
  pool->free(first, 5);
  EXPECT_NE(pool->allocate(20 * kMebi, 0), first);
  clock.finish(5);
  EXPECT_EQ(pool->allocate(20 * kMebi, 0), first);
}

TEST_F(Reuse, AForgottenStreamLeavesItsMemoryToAll) {
  const tb_address first = pool->allocate(20 * kMebi, 4);
  const tb_address other = pool->allocate(20 * kMebi, 0);
  pool->record_use(other, 4);
  clock.enqueue(4);
  pool->free(first, 4);
  pool->free(other, 0);
  pool->forget_stream(4);
  const tb_address again = pool->allocate(20 * kMebi, 1);
  EXPECT_TRUE(again == first || again == other);
  EXPECT_EQ(source.creates, 2);
}

TEST_F(Reuse, WrongAddressesAreRefused) {
  const tb_address a = pool->allocate(1000, 0);
  EXPECT_EQ(error_of([&] { pool->free(a + 512, 0); }).status(), TB_E_INVALID);
  EXPECT_EQ(error_of([&] { pool->record_use(a + 1, 0); }).status(), TB_E_INVALID);
  EXPECT_EQ(error_of([&] { pool->info(12345); }).status(), TB_E_INVALID);
  EXPECT_EQ(pool->info(a + 999).base, a);
  pool->free(a, 0);
  const Error twice = error_of([&] { pool->free(a, 0); });
  EXPECT_EQ(twice.status(), TB_E_INVALID);
  EXPECT_THAT(twice.what(), testing::HasSubstr("freed twice"));
  EXPECT_EQ(error_of([&] { pool->info(a); }).status(), TB_E_INVALID);
}

TEST_F(Reuse, ABigCachedSegmentIsNotBrokenForALittleBlock) {
  pool->allocate(9000 * kMebi, 0);  // so that a cache of 1000 MiB is in measure
  const tb_address big = pool->allocate(1000 * kMebi, 0);
  pool->free(big, 0);
  const tb_address little = pool->allocate(12 * kMebi, 0);
  EXPECT_NE(space.resolve(little).base, space.resolve(big).base);
}

}  // namespace
}  // namespace ocltensor::runtime
