// Statistics, watermarks, garbage collection, the out-of-memory ladder and its text, the debug log.
#include <gmock/gmock.h>

#include "fakes.h"

namespace ocltensor::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Limits : public PoolTest {
 protected:
  static PoolOptions gibi(double high, double low, uint64_t physical = 0) {
    return {.recommended_bytes = kGibi,
            .physical_bytes = physical,
            .high_ratio = high,
            .low_ratio = low,
            .debug = 0,
            .log = {}};
  }
  // Enqueues work that does not finish by itself, so that a segment cannot simply be released.
  tb_address allocate_and_use(uint64_t bytes, StreamId stream) {
    clock.enqueue(stream);
    return pool->allocate(bytes, stream);
  }
};

TEST_F(Limits, StatisticsCountWhatTheySay) {
  const tb_address a = pool->allocate(1000, 0);
  const tb_address b = pool->allocate(20 * kMebi, 0);
  pool->free(b, 0);
  pool->count_pinned(4096);
  pool->count_pinned(-96);
  tb_memory_stats s = stats();
  EXPECT_EQ(s.requested_bytes.current, 1000);
  EXPECT_EQ(s.requested_bytes.peak, 1000 + 20 * int64_t{kMebi});
  EXPECT_EQ(s.requested_bytes.freed, 20 * int64_t{kMebi});
  EXPECT_EQ(s.allocated_bytes.current, 1024);
  EXPECT_EQ(s.allocations.current, 1);
  EXPECT_EQ(s.allocations.allocated, 2);
  EXPECT_EQ(s.segments.current, 2);
  EXPECT_EQ(s.reserved_bytes.current, 30 * int64_t{kMebi});
  EXPECT_EQ(s.driver_bytes, 30 * kMebi);
  EXPECT_EQ(s.pinned_bytes.current, 4000);
  EXPECT_EQ(s.pinned_bytes.peak, 4096);
  pool->reset_peak_stats();
  pool->reset_accumulated_stats();
  s = stats();
  EXPECT_EQ(s.requested_bytes.peak, 1000);
  EXPECT_EQ(s.requested_bytes.allocated, 0);
  EXPECT_EQ(s.requested_bytes.freed, 0);
  EXPECT_EQ(s.requested_bytes.current, 1000);
  pool->free(a, 0);
  EXPECT_EQ(stats().requested_bytes.freed, 1000);
}

TEST_F(Limits, EmptyCacheKeepsOnlyOccupiedSegments) {
  const tb_address a = pool->allocate(1000, 0);
  const tb_address b = pool->allocate(20 * kMebi, 0);
  const tb_address c = pool->allocate(5 * kMebi, 1);
  pool->record_use(b, 2);
  for (const StreamId stream : {0, 1, 2}) clock.enqueue(stream);
  pool->free(b, 0);
  pool->free(c, 1);
  pool->empty_cache();
  EXPECT_GT(clock.waits, 0);
  EXPECT_EQ(stats().reserved_bytes.current, 8 * int64_t{kMebi});
  pool->free(a, 0);
  pool->empty_cache();
  EXPECT_EQ(stats().reserved_bytes.current, 0);
  EXPECT_TRUE(source.live.empty());
}

TEST_F(Limits, IsolatedAllocationsAreBuffersOfTheExactSize) {
  PoolOptions options = gibi(1, 0);
  options.debug = kDebugIsolated;
  make(options);
  const tb_address a = pool->allocate(1000, 0);
  pool->free(a, 0);
  const tb_address b = pool->allocate(900, 0);
  EXPECT_THAT(source.created, testing::ElementsAre(1000, 900));
  EXPECT_EQ(pool->info(b).offset, 0);
  for (int i = 0; i < 100; ++i) pool->free(pool->allocate(kMebi, 0), 0);  // and they go back
  EXPECT_LE(stats().reserved_bytes.current, 40 * int64_t{kMebi});
  pool->verify();
}

// Ten segments are freed, then one is made: how many are left depends on the option.
TEST_F(Limits, FreeSegmentsAreKeptUpToAShareOfThePeak) {
  const auto left = [&](double keep_free) {
    PoolOptions options = gibi(0, 0);
    options.keep_free = keep_free;
    pool.reset();
    make(options);
    std::vector<tb_address> many;
    for (int i = 0; i < 10; ++i) many.push_back(pool->allocate(40 * kMebi, 0));
    for (const tb_address a : many) pool->free(a, 0);
    EXPECT_NE(pool->allocate(100 * kMebi, 0), 0u);
    EXPECT_LE(stats().reserved_bytes.current, 600 * int64_t{kMebi} + 32 * int64_t{kMebi});
    pool->verify();
    return source.live.size();
  };
  EXPECT_EQ(left(0.125), 2u);
  EXPECT_EQ(left(0.5), 5u);  // the peak when the last one was asked for: 360 MiB
  EXPECT_EQ(left(1), 11u);
}

TEST_F(Limits, TheHighWatermarkIsAHardLimit) {
  make(gibi(0.5, 0));
  EXPECT_EQ(stats().limit_bytes, 512 * kMebi);
  const tb_address a = pool->allocate(400 * kMebi, 0);
  const Error error = error_of([&] { pool->allocate(200 * kMebi, 0); });
  EXPECT_EQ(error.status(), TB_E_OUT_OF_MEMORY);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("tried to allocate 200.00 MiB"), HasSubstr("allocated 400"),
                    HasSubstr("cached "), HasSubstr("limit 512.00 MiB"),
                    HasSubstr("largest single allocation"), HasSubstr("smaller batch"),
                    HasSubstr("empty_cache"), HasSubstr("OCLTENSOR_HIGH_WATERMARK_RATIO")));
  EXPECT_EQ(stats().out_of_memory_errors, 1u);
  EXPECT_EQ(stats().allocation_retries, 1u);
  EXPECT_NE(pool->allocate(50 * kMebi, 0), 0u) << "a smaller one still succeeds";
  pool->free(a, 0);
  EXPECT_NE(pool->allocate(300 * kMebi, 0), 0u);
  EXPECT_LE(source.peak, 512 * kMebi);
}

TEST_F(Limits, TheTextNamesWhatSetTheLimit) {
  make(gibi(1.7, 0));
  const auto text = [&] { return std::string(error_of([&] { pool->allocate(kGibi, 0); }).what()); };
  pool->set_fraction(0.004);
  EXPECT_THAT(text(), HasSubstr("raise set_per_process_memory_fraction (now 0.004;"));
  pool->set_watermarks(0.25, 0);
  EXPECT_THAT(text(), HasSubstr("raise OCLTENSOR_HIGH_WATERMARK_RATIO (now 0.25;"));
}

TEST_F(Limits, NearTheLimitASegmentIsAsSmallAsTheRequest) {
  make(gibi(10.0 / 1024, 0));  // 10 MiB: no large segment of 32 MiB
  EXPECT_NE(pool->allocate(3 * kMebi, 0), 0u);
  EXPECT_NE(pool->allocate(1000, 0), 0u);
  EXPECT_NE(pool->allocate(1000 * kKibi, 0), 0u);
}

TEST_F(Limits, RatiosAreCheckedAndClamped) {
  make(gibi(1.7, 1.4, 3 * kGibi / 2));
  EXPECT_EQ(stats().limit_bytes, 3 * kGibi / 2) << "physical memory";
  pool->set_watermarks(0.5, 1.4);
  EXPECT_EQ(stats().low_limit_bytes, kGibi / 2) << "clamped to the high one";
  pool->set_fraction(1.0);
  EXPECT_EQ(stats().limit_bytes, kGibi);
  EXPECT_EQ(stats().low_limit_bytes, kGibi);
  pool->set_fraction(0);
  EXPECT_EQ(stats().limit_bytes, 0u);
  EXPECT_EQ(stats().low_limit_bytes, 1503238554u) << "1.4 GiB again";
  for (const double bad : {-0.1, 2.1, std::numeric_limits<double>::quiet_NaN()}) {
    const Error error = error_of([&] { pool->set_fraction(bad); });
    EXPECT_EQ(error.status(), TB_E_INVALID) << bad;
    EXPECT_THAT(error.what(), HasSubstr("0..2"));
    EXPECT_EQ(error_of([&] { pool->set_watermarks(1, bad); }).status(), TB_E_INVALID);
  }
  EXPECT_EQ(stats().limit_bytes, 0u) << "a refused setting changes nothing";
}

TEST_F(Limits, AFractionWorksAtOnce) {
  make(gibi(0, 0));
  const tb_address a = pool->allocate(300 * kMebi, 0);
  const tb_address b = pool->allocate(600 * kMebi, 0);
  pool->free(b, 0);
  pool->set_fraction(0.5);
  EXPECT_LE(source.total, 512 * kMebi) << "what is cached above it goes back";
  EXPECT_EQ(error_of([&] { pool->allocate(300 * kMebi, 0); }).status(), TB_E_OUT_OF_MEMORY);
  pool->set_fraction(0);
  EXPECT_NE(pool->allocate(3000 * kMebi, 0), 0u);
  pool->free(a, 0);
}

TEST_F(Limits, AboveTheLowWatermarkCachedSegmentsGoFirst) {
  make(gibi(0, 0.5));
  EXPECT_EQ(pool->low_watermark_slack(), 512 * kMebi);
  pool->allocate(300 * kMebi, 0);
  const tb_address b = pool->allocate(35 * kMebi, 0);
  pool->free(b, 0);  // below the share that is cached anyway
  pool->allocate(120 * kMebi, 0);
  EXPECT_EQ(source.destroys, 0);
  EXPECT_LT(pool->low_watermark_slack(), 60 * kMebi);
  pool->allocate(70 * kMebi, 0);
  EXPECT_EQ(source.destroys, 1) << "garbage collection";
  EXPECT_NE(pool->allocate(200 * kMebi, 0), 0u) << "a soft limit";
  EXPECT_EQ(pool->low_watermark_slack(), 0u);
  pool->set_watermarks(0, 0);
  EXPECT_EQ(pool->low_watermark_slack(), UINT64_MAX);
}

TEST_F(Limits, LadderFirstTakesFromTheSamePool) {
  make(gibi(0, 0));
  const tb_address small = pool->allocate(1000, 0);
  const tb_address large = pool->allocate(20 * kMebi, 0);
  pool->free(small, 0);
  pool->free(large, 0);
  source.refuses = [&](uint64_t) { return source.live.size() > 1; };
  EXPECT_NE(pool->allocate(50 * kMebi, 0), 0u);
  EXPECT_EQ(source.destroys, 1);
  EXPECT_EQ(source.live.begin()->second + source.live.rbegin()->second, 8 * kMebi + 52 * kMebi);
  EXPECT_EQ(stats().allocation_retries, 1u);
  EXPECT_EQ(stats().out_of_memory_errors, 0u);
}

TEST_F(Limits, LadderThenTakesFromAllPools) {
  make(gibi(0, 0));
  pool->free(pool->allocate(1000, 0), 0);
  source.refuses = [&](uint64_t) { return !source.live.empty(); };
  EXPECT_NE(pool->allocate(50 * kMebi, 0), 0u);
  EXPECT_EQ(source.destroys, 1);
  EXPECT_EQ(clock.waits, 0);
}

TEST_F(Limits, LadderThenWaitsForPendingFrees) {
  make(gibi(0, 0));
  const tb_address a = allocate_and_use(50 * kMebi, 1);
  pool->record_use(a, 2);
  clock.enqueue(2);
  pool->free(a, 1);
  source.refuses = [](uint64_t) { return true; };
  clock.on_wait = [&] { stats(); };  // the lock is free while it waits
  EXPECT_EQ(pool->allocate(50 * kMebi, 3), a);
  EXPECT_GT(clock.waits, 0);
  EXPECT_EQ(source.destroys, 0) << "the waited-for block itself fits";
}

TEST_F(Limits, LadderReleasesWhatItWaitedFor) {
  make(gibi(0, 0));
  const tb_address a = allocate_and_use(20 * kMebi, 1);
  pool->free(a, 1);
  source.refuses = [&](uint64_t) { return !source.live.empty(); };
  EXPECT_NE(pool->allocate(50 * kMebi, 3), 0u);
  EXPECT_EQ(source.destroys, 1);
}

TEST_F(Limits, AfterAFailureThePoolGoesOn) {
  make(gibi(0, 0));
  const tb_address a = pool->allocate(100 * kMebi, 0);
  source.refuses = [](uint64_t bytes) { return bytes > 64 * kMebi; };
  const Error error = error_of([&] { pool->allocate(90 * kMebi, 0); });
  EXPECT_EQ(error.status(), TB_E_OUT_OF_MEMORY);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("limit none"), HasSubstr("the fake driver is full")));
  EXPECT_NE(pool->allocate(40 * kMebi, 0), 0u);
  pool->free(a, 0);
  EXPECT_EQ(pool->allocate(90 * kMebi, 0), a);
}

TEST_F(Limits, OtherErrorsOfTheDriverPass) {
  source.refuses = [](uint64_t) -> bool { throw Error(TB_E_DEVICE_LOST, 0, "gone"); };
  EXPECT_EQ(error_of([&] { pool->allocate(10, 0); }).status(), TB_E_DEVICE_LOST);
  source.refuses = nullptr;
  EXPECT_NE(pool->allocate(10, 0), 0u);
}

TEST_F(Limits, AFailingWaitLeavesThePoolUsable) {
  make(gibi(0, 0));
  pool->free(allocate_and_use(50 * kMebi, 1), 1);
  clock.on_wait = [] { throw Error(TB_E_DEVICE_LOST, 0, "gone"); };
  EXPECT_EQ(error_of([&] { pool->empty_cache(); }).status(), TB_E_DEVICE_LOST);
  clock.on_wait = nullptr;
  pool->empty_cache();
  EXPECT_TRUE(source.live.empty());
}

TEST_F(Limits, TheLargestAllocationIsAHardWall) {
  source.largest = 100 * kMebi + 7;
  make(gibi(0, 0));
  const int creates = source.creates;
  const Error error = error_of([&] { pool->allocate(100 * kMebi + 8, 0); });
  EXPECT_EQ(error.status(), TB_E_OUT_OF_MEMORY);
  EXPECT_THAT(error.what(), HasSubstr("largest single allocation"));
  EXPECT_EQ(error_of([&] { pool->allocate(~uint64_t{0}, 0); }).status(), TB_E_OUT_OF_MEMORY);
  EXPECT_EQ(source.creates, creates);
  for (const uint64_t bytes : {100 * kMebi + 7, 100 * kMebi, 100 * kMebi - 1}) {
    const tb_address a = pool->allocate(bytes, 0);
    EXPECT_EQ(space.resolve(a + bytes).segment, space.resolve(a).segment);
    pool->verify();
    pool->free(a, 0);
  }
  EXPECT_EQ(source.creates, creates + 1) << "the cached one serves all three";
}

TEST_F(Limits, TheLogFollowsItsMask) {
  std::vector<std::string> lines;
  PoolOptions options = gibi(0, 0);
  options.log = [&](const std::string& line) {
    lines.push_back(line);
    if (pool) stats();  // a log may call back
  };
  const auto lines_of = [&](uint32_t mask, uint64_t bytes) {
    options.debug = mask;
    pool.reset();
    make(options);
    lines.clear();
    pool->free(pool->allocate(bytes, 0), 0);
    pool->empty_cache();
    return lines.size();
  };
  EXPECT_EQ(lines_of(0, 1000), 0u);
  for (const uint32_t bit : {1u, 2u, 4u, 8u}) EXPECT_EQ(lines_of(bit, 1000), 1u) << bit;
  EXPECT_EQ(lines_of(15, 1000), 4u);
  EXPECT_EQ(lines_of(15 | 16, 1000), 0u);
  EXPECT_EQ(lines_of(15 | 16, 5 * kMebi), 4u);
  options.log = [](const std::string&) { throw std::runtime_error("disk full"); };
  EXPECT_EQ(lines_of(15, 1000), 0u);
}

}  // namespace
}  // namespace ocltensor::runtime
