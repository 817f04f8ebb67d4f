// A driver and streams without a device, for the allocator's tests.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/pool/pool.h"

namespace ocltensor::runtime {

inline constexpr uint64_t kKibi = 1024;
inline constexpr uint64_t kMebi = 1024 * kKibi;
inline constexpr uint64_t kGibi = 1024 * kMebi;

// Called under the pool's lock alone, so it needs none.
class FakeSource : public SegmentSource {
 public:
  void* create(uint64_t bytes) override {
    ++creates;
    if (refuses && refuses(bytes)) throw Error(TB_E_OUT_OF_MEMORY, 0, "the fake driver is full");
    EXPECT_GT(bytes, 0u);
    EXPECT_LE(bytes, largest);
    auto* handle = new uint64_t(bytes);
    live[handle] = bytes;
    created.push_back(bytes);
    total += bytes;
    peak = std::max(peak, total);
    return handle;
  }
  void destroy(void* segment) override {
    const auto found = live.find(segment);
    ASSERT_NE(found, live.end()) << "a segment is destroyed twice";
    total -= found->second;
    live.erase(found);
    delete static_cast<uint64_t*>(segment);
    ++destroys;
  }
  uint64_t largest_allocation() override { return largest; }

  uint64_t largest = 64 * kGibi;
  std::function<bool(uint64_t)> refuses;
  std::map<void*, uint64_t> live;
  std::vector<uint64_t> created;
  uint64_t total = 0, peak = 0;
  int creates = 0, destroys = 0;
};

// Streams are 0..15. Work is enqueued and finished by hand; a wait finishes it.
class FakeClock : public StreamClock {
 public:
  static constexpr size_t kStreams = 16;
  uint64_t current(StreamId stream) override { return enqueued[stream]; }
  bool passed(StreamId stream, uint64_t ticket) override {
    ++asked;
    return finished[stream] >= ticket;
  }
  void wait(StreamId stream, uint64_t ticket) override {
    ++waits;
    if (on_wait) on_wait();
    uint64_t seen = finished[stream];
    while (seen < ticket && !finished[stream].compare_exchange_weak(seen, ticket)) {
    }
  }
  std::vector<StreamId> streams() override { return existing; }
  void enqueue(StreamId stream) { ++enqueued[stream]; }
  void finish(StreamId stream) { finished[stream] = enqueued[stream].load(); }

  std::atomic<uint64_t> enqueued[kStreams]{};
  std::atomic<uint64_t> finished[kStreams]{};
  std::atomic<int> asked{0}, waits{0};
  std::function<void()> on_wait;
  std::vector<StreamId> existing{0, 1, 2, 3};
};

class PoolTest : public testing::Test {
 protected:
  // 64 GiB of recommended memory unless a test sets its own.
  void make(PoolOptions options = {}) {
    if (options.recommended_bytes == 0) options.recommended_bytes = 64 * kGibi;
    pool = std::make_unique<Pool>(space, source, clock, options);
  }
  void SetUp() override { make(); }
  void TearDown() override {
    if (pool) pool->verify();
    pool.reset();
    EXPECT_TRUE(source.live.empty());
    EXPECT_EQ(space.free_ranges(), 1u);
  }
  tb_memory_stats stats() {
    tb_memory_stats out{};
    pool->fill_stats(out);
    return out;
  }
  // The error that a call ends with; its status is 0 if it succeeded.
  template <typename Body>
  static Error error_of(Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      return error;
    }
    return Error(TB_OK, 0, "no error");
  }

  AddressSpace space{64 * kGibi};
  FakeSource source;
  FakeClock clock;
  std::unique_ptr<Pool> pool;
};

}  // namespace ocltensor::runtime
