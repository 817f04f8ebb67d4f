// Memory of others in the pool: one allocation, no figure counts it, and its end waits.
#include "fakes.h"

namespace ocltensor::runtime {
namespace {

class Imports : public PoolTest {};

TEST_F(Imports, AreOneAllocationThatNoStatisticCounts) {
  const tb_address own = pool->allocate(4 * kKibi, 1);
  const tb_memory_stats before = stats();
  void* handle = source.create(6 * kMebi);
  const tb_address base = pool->adopt(handle, 6 * kMebi, 1);
  for (const uint64_t offset : {uint64_t{0}, 3 * kMebi, 6 * kMebi - 1}) {
    const BlockInfo info = pool->info(base + offset);
    EXPECT_EQ(info.base, base);
    EXPECT_EQ(info.requested, 6 * kMebi);
    EXPECT_EQ(info.segment, handle);
  }
  EXPECT_EQ(pool->address_of(handle), base);
  EXPECT_EQ(stats().reserved_bytes.current, before.reserved_bytes.current);
  EXPECT_EQ(stats().allocated_bytes.current, before.allocated_bytes.current);
  pool->verify();
  pool->empty_cache();  // does not take it
  EXPECT_EQ(pool->info(base).base, base);
  pool->abandon(base);
  EXPECT_EQ(error_of([&] { pool->info(base); }).status(), TB_E_INVALID);
  EXPECT_EQ(error_of([&] { pool->address_of(handle); }).status(), TB_E_INVALID);
  pool->free(own, 1);
}

TEST_F(Imports, EndWhenTheStreamsThatUseThemHavePassed) {
  const tb_address base = pool->adopt(source.create(2 * kMebi), 2 * kMebi, 1);
  clock.enqueue(1);
  clock.enqueue(2);
  clock.enqueue(3);
  pool->record_use(base, 2);
  clock.on_wait = [&] { EXPECT_EQ(source.live.size(), 1u) << "gone before the wait"; };
  pool->abandon(base);
  EXPECT_EQ(clock.waits, 2);
  EXPECT_EQ(clock.finished[3], 0u);  // it used nothing
  EXPECT_TRUE(source.live.empty());
}

TEST_F(Imports, AreNeitherFreedNorGivenUpForOthers) {
  const tb_address own = pool->allocate(2 * kMebi, 1);
  const tb_address base = pool->adopt(source.create(2 * kMebi), 2 * kMebi, 1);
  EXPECT_EQ(error_of([&] { pool->free(base, 1); }).status(), TB_E_INVALID);
  EXPECT_EQ(error_of([&] { pool->abandon(own); }).status(), TB_E_INVALID);
  EXPECT_EQ(error_of([&] { pool->abandon(base + 512); }).status(), TB_E_INVALID);
  pool->abandon(base);
  EXPECT_EQ(error_of([&] { pool->abandon(base); }).status(), TB_E_INVALID);
  pool->free(own, 1);
}

TEST_F(Imports, ServeNoRequest) {
  const tb_address base = pool->adopt(source.create(2 * kMebi), 2 * kMebi, 1);
  for (int i = 0; i < 200; ++i) {
    const tb_address address = pool->allocate(kMebi, 1);
    EXPECT_TRUE(address < base || address >= base + 2 * kMebi);
    pool->free(address, 1);
  }
  pool->abandon(base);
}

}  // namespace
}  // namespace ocltensor::runtime
