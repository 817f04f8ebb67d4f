// Private pools: what they keep, for whom, and when it comes back.
#include <gmock/gmock.h>

#include "fakes.h"

namespace ocltensor::runtime {
namespace {

class Private : public PoolTest {
 protected:
  StreamId own = 0;
  void SetUp() override {
    make();
    own = pool->open_private();
  }
  tb_address recorded(uint64_t bytes) {
    pool->divert(1, own);
    const tb_address address = pool->allocate(bytes, 1);
    pool->divert(1, kNoStream);
    return address;
  }
};

TEST_F(Private, WhatIsFreedInTheRecordingServesItAtOnceAndNobodyElse) {
  pool->divert(1, own);
  clock.enqueue(1);  // work of before that still runs
  const tb_address a = pool->allocate(4 * kKibi, 1);
  pool->free(a, 1);
  EXPECT_EQ(pool->allocate(4 * kKibi, 1), a);
  pool->free(a, 1);
  const tb_address b = pool->allocate(8 * kKibi, 1);  // shelves a
  pool->divert(1, kNoStream);
  clock.finish(1);
  for (const StreamId stream : {0, 1, 2})
    for (int i = 0; i < 3000; ++i) {
      const tb_address other = pool->allocate(4 * kKibi, stream);
      ASSERT_NE(other, a);
      ASSERT_NE(other, b);
    }
  pool->verify();
}

TEST_F(Private, BlocksAreDistinctForDifferentPools) {
  const StreamId other = pool->open_private();
  const tb_address a = recorded(4 * kKibi);
  pool->divert(1, own);
  pool->free(a, 1);
  pool->divert(1, other);
  EXPECT_NE(pool->allocate(4 * kKibi, 1), a);
  pool->divert(1, own);
  EXPECT_EQ(pool->allocate(4 * kKibi, 1), a);
}

TEST_F(Private, ResultsThatAreFreedLaterWaitForAllStreams) {
  const tb_address a = recorded(4 * kKibi);
  for (const StreamId stream : {0, 1, 2, 3}) clock.enqueue(stream);
  pool->free(a, 1);
  EXPECT_EQ(stats().allocated_bytes.current, 0);
  EXPECT_GT(stats().active_bytes.current, 0);
  for (const StreamId stream : {0, 1, 2}) clock.finish(stream);
  EXPECT_GT(stats().active_bytes.current, 0);
  clock.finish(3);
  EXPECT_EQ(stats().active_bytes.current, 0);
  EXPECT_NE(pool->allocate(4 * kKibi, 1), a);
  EXPECT_EQ(recorded(4 * kKibi), a);
}

TEST_F(Private, NothingThatItKeepsIsReleased) {
  const tb_address a = recorded(40 * kMebi);
  pool->free(a, 1);
  pool->empty_cache();
  EXPECT_EQ(stats().reserved_bytes.current, static_cast<int64_t>(40 * kMebi + 2 * kMebi));
  EXPECT_EQ(clock.waits, 0);
  pool->close_private(own);
  pool->empty_cache();
  EXPECT_EQ(stats().reserved_bytes.current, 0);
}

TEST_F(Private, ClosedMemoryWaitsForTheWorkThatMayUseIt) {
  const tb_address a = recorded(4 * kMebi);
  pool->divert(1, own);
  pool->free(a, 1);
  pool->divert(1, kNoStream);
  clock.enqueue(2);  // a replay
  pool->close_private(own);
  EXPECT_NE(pool->allocate(4 * kMebi, 1), a);
  EXPECT_GT(stats().active_bytes.current, stats().allocated_bytes.current);
  EXPECT_EQ(clock.waits, 0);
  clock.finish(2);
  EXPECT_EQ(stats().active_bytes.current, stats().allocated_bytes.current);
  EXPECT_EQ(pool->allocate(4 * kMebi, 3), a);
}

TEST_F(Private, WhatOutlivesItsPoolIsFreedAsOtherMemory) {
  const tb_address a = recorded(4 * kMebi);
  pool->close_private(own);
  EXPECT_EQ(pool->info(a).base, a);
  clock.enqueue(3);
  pool->free(a, 1);
  EXPECT_NE(pool->allocate(4 * kMebi, 1), a);
  clock.finish(3);
  EXPECT_EQ(stats().active_bytes.current, stats().allocated_bytes.current);
  EXPECT_EQ(pool->allocate(4 * kMebi, 2), a);
}

TEST_F(Private, MemoryOfBeforeIsFreedAsEver) {
  const tb_address before = pool->allocate(4 * kKibi, 1);
  clock.enqueue(1);
  pool->divert(1, own);
  pool->free(before, 1);
  EXPECT_NE(pool->allocate(4 * kKibi, 1), before);
  pool->divert(1, kNoStream);
  EXPECT_EQ(stats().active_bytes.current, stats().allocated_bytes.current);
  clock.finish(1);
  pool->empty_cache();
  EXPECT_EQ(stats().segments.current, 1);  // that of the recording alone
}

TEST_F(Private, AClosedPoolTakesNoRecording) {
  pool->close_private(own);
  pool->close_private(own);
  EXPECT_THROW(pool->divert(1, own), Error);
}

}  // namespace
}  // namespace ocltensor::runtime
