// Random and drifting workloads: bounded waste, exact statistics, no overlap, speed.
#include <gmock/gmock.h>

#include <cmath>
#include <mutex>
#include <random>
#include <thread>

#include "fakes.h"

namespace ocltensor::runtime {
namespace {

class Stress : public PoolTest {};

// Intervals of live blocks, kept apart from the pool.
class Shadow {
 public:
  void add(tb_address start, uint64_t bytes, uint64_t block) {
    std::lock_guard lock(mutex_);
    const auto after = live_.lower_bound(start);
    // Strictly: one past the end is not the start of another.
    const bool apart = (after == live_.end() || start + bytes < after->first) &&
                       (after == live_.begin() || std::prev(after)->second < start);
    EXPECT_TRUE(apart) << "a block overlaps or touches another";
    live_[start] = start + bytes;
    requested += bytes;
    allocated += block;
    ++count;
    all_requested += bytes;
    all_allocated += block;
    ++all_count;
  }
  void remove(tb_address start, uint64_t bytes, uint64_t block) {
    std::lock_guard lock(mutex_);
    EXPECT_EQ(live_.erase(start), 1u);
    requested -= bytes;
    allocated -= block;
    --count;
  }
  int64_t requested = 0, allocated = 0, count = 0;
  int64_t all_requested = 0, all_allocated = 0, all_count = 0;

 private:
  std::mutex mutex_;
  std::map<tb_address, tb_address> live_;
};

struct Live {
  tb_address address;
  uint64_t bytes;
  uint64_t block;
};

uint64_t log_uniform(std::mt19937_64& random, double low, double high) {
  return static_cast<uint64_t>(
      std::exp(std::uniform_real_distribution(std::log(low), std::log(high))(random)));
}

// One thread's life: allocates on its own stream, hands some blocks to other streams, frees at
// random.
void work(Pool& pool, FakeClock& clock, Shadow& shadow, StreamId stream, int allocations) {
  std::mt19937_64 random(stream * 977 + 5);
  std::vector<Live> live;
  const auto drop = [&](size_t i) {
    const Live block = live[i];
    live[i] = live.back();
    live.pop_back();
    if (random() % 16 == 0) pool.record_use(block.address, (stream + 1) % 8);
    shadow.remove(block.address, block.bytes,
                  block.block);  // before the pool may hand it out again
    pool.free(block.address, random() % 64 == 0 ? (stream + 3) % 8 : stream);
  };
  for (int i = 0; i < allocations; ++i) {
    // Shapes change: every 500 allocations another scale rules.
    const double top = std::ldexp(1.0, 26 - (i / 500 + static_cast<int>(stream)) % 4);
    const uint64_t bytes = std::min<uint64_t>(log_uniform(random, 1, top), 64 * kMebi);
    const tb_address address = pool.allocate(bytes, stream);
    const BlockInfo info = pool.info(address);
    shadow.add(address, bytes, info.bytes);
    live.push_back({address, bytes, info.bytes});
    clock.enqueue(stream);
    if (random() % 4 == 0) clock.finish(stream);
    while (live.size() > 40 + random() % 40) drop(random() % live.size());
  }
  while (!live.empty()) drop(live.size() - 1);
  clock.finish(stream);  // a device does not stop because its host thread has
}

TEST_F(Stress, EightThreadsStayWithinHalfOfThePeak) {
  constexpr int kThreads = 8, kAllocations = 100000;
  Shadow shadow;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] { work(*pool, clock, shadow, i, kAllocations / kThreads); });
  for (auto& thread : threads) thread.join();
  pool->verify();
  const tb_memory_stats s = stats();
  RecordProperty("peak_allocated_mib", static_cast<int>(s.allocated_bytes.peak >> 20));
  RecordProperty("peak_reserved_mib", static_cast<int>(s.reserved_bytes.peak >> 20));
  std::printf("peak allocated %ld MiB, reserved %ld MiB (%.3f); %d segments made\n",
              static_cast<long>(s.allocated_bytes.peak >> 20),
              static_cast<long>(s.reserved_bytes.peak >> 20),
              static_cast<double>(s.reserved_bytes.peak) / s.allocated_bytes.peak, source.creates);
  EXPECT_LE(s.reserved_bytes.peak, s.allocated_bytes.peak * 3 / 2);
  EXPECT_EQ(shadow.count, 0);
  EXPECT_EQ(s.allocations.current, 0);
  EXPECT_EQ(s.requested_bytes.current, 0);
  EXPECT_EQ(s.allocated_bytes.current, 0);
  EXPECT_EQ(s.allocations.allocated, shadow.all_count);
  EXPECT_EQ(s.allocations.freed, shadow.all_count);
  EXPECT_EQ(s.requested_bytes.allocated, shadow.all_requested);
  EXPECT_EQ(s.requested_bytes.freed, shadow.all_requested);
  EXPECT_EQ(s.allocated_bytes.allocated, shadow.all_allocated);
  EXPECT_EQ(s.reserved_bytes.current, static_cast<int64_t>(source.total));
  EXPECT_EQ(s.reserved_bytes.peak, static_cast<int64_t>(source.peak));
  pool->empty_cache();
  EXPECT_EQ(stats().active_bytes.current, 0);
  EXPECT_EQ(source.total, 0u);
}

// What streams may still do to memory that was freed: an independent model of the reuse rule.
class InFlight {
 public:
  explicit InFlight(FakeClock& clock) : clock_(clock) {}
  void freed(tb_address start, uint64_t bytes, const std::vector<StreamId>& users) {
    Range range{start, start + bytes, {}};
    for (const StreamId user : users) range.tickets.emplace_back(user, clock_.enqueued[user]);
    ranges_.push_back(std::move(range));
  }
  // May the stream take [start, start + bytes) now?
  bool safe(tb_address start, uint64_t bytes, StreamId stream) {
    std::erase_if(ranges_, [&](Range& range) {
      std::erase_if(range.tickets, [&](const auto& ticket) {
        return clock_.finished[ticket.first] >= ticket.second;
      });
      return range.tickets.empty();
    });
    for (const Range& range : ranges_)
      for (const auto& [user, ticket] : range.tickets)
        if (range.start < start + bytes && start < range.end && user != stream) return false;
    return true;
  }

 private:
  struct Range {
    tb_address start, end;
    std::vector<std::pair<StreamId, uint64_t>> tickets;
  };
  FakeClock& clock_;
  std::vector<Range> ranges_;
};

TEST_F(Stress, InvariantsHoldAfterEveryStep) {
  struct Owned {
    tb_address address;
    uint64_t bytes;
    std::vector<StreamId> users;  // the first is the owner
  };
  std::mt19937_64 random(3);
  std::vector<Owned> live;
  InFlight in_flight(clock);
  int64_t requested = 0;
  for (int i = 0; i < 6000; ++i) {
    const StreamId stream = random() % 3;
    clock.enqueue(stream);
    if (random() % 5 == 0) clock.finish(random() % 3);
    if (live.size() < 60 && random() % 2 == 0) {
      const uint64_t bytes = log_uniform(random, 1, 30e6);
      const tb_address address = pool->allocate(bytes, stream);
      ASSERT_TRUE(in_flight.safe(address, bytes, stream)) << "another stream still works on it";
      live.push_back({address, bytes, {stream}});
      requested += static_cast<int64_t>(bytes);
    } else if (!live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      Owned owned = live.back();
      live.pop_back();
      for (uint64_t uses = random() % 8; uses > 5; --uses) {
        owned.users.push_back(random() % 3);
        pool->record_use(owned.address, owned.users.back());
      }
      owned.users.push_back(random() % 4 == 0 ? stream : owned.users.front());
      in_flight.freed(owned.address, owned.bytes, owned.users);
      pool->free(owned.address, owned.users.back());
      requested -= static_cast<int64_t>(owned.bytes);
    }
    if (random() % 500 == 0) pool->empty_cache();
    pool->verify();
    ASSERT_EQ(stats().requested_bytes.current, requested);
  }
}

// A training loop whose batch changes in every iteration: activations are kept, then freed
// backwards.
TEST_F(Stress, AChangingBatchDoesNotGrowReservedMemory) {
  std::mt19937_64 random(11);
  const auto iteration = [&](uint64_t batch) {
    std::vector<tb_address> activations;
    for (const uint64_t width : {3000, 64000, 150000, 150000, 40000, 9000, 4000})
      activations.push_back(pool->allocate(batch * width, 0));
    while (!activations.empty()) {
      const tb_address gradient = pool->allocate(batch * 50000, 0);
      pool->free(activations.back(), 0);
      activations.pop_back();
      pool->free(gradient, 0);
    }
    clock.enqueue(0);
    if (batch % 3 == 0) clock.finish(0);
  };
  std::vector<tb_address> weights;
  for (int i = 0; i < 20; ++i) weights.push_back(pool->allocate(3 * kMebi + i * 1000, 0));
  iteration(256);
  for (int i = 0; i < 500; ++i) iteration(random() % 256 + 1);
  const int64_t settled = stats().reserved_bytes.peak;
  const int made = source.creates;
  for (int i = 0; i < 9500; ++i) iteration(random() % 256 + 1);
  const tb_memory_stats s = stats();
  std::printf("reserved %ld MiB, allocated %ld MiB, %d segments made after the first 500\n",
              static_cast<long>(s.reserved_bytes.peak >> 20),
              static_cast<long>(s.allocated_bytes.peak >> 20), source.creates - made);
  EXPECT_LE(s.reserved_bytes.peak, settled + 2 * static_cast<int64_t>(kMebi));
  EXPECT_LE(s.reserved_bytes.peak, s.allocated_bytes.peak * 3 / 2);
}

// A host that runs ahead of its device, with no size twice: memory stays bounded by waiting.
TEST_F(Stress, ARunawayHostWaitsInsteadOfReserving) {
  for (uint64_t i = 0; i < 2000; ++i) {
    const StreamId stream = i % 4;
    const tb_address address = pool->allocate(20 * kMebi + i * 100000 % (90 * kMebi), stream);
    clock.enqueue(stream);
    pool->free(address, stream);
  }
  EXPECT_LE(source.peak, 256 * kMebi);
}

TEST_F(Stress, AHitTouchesNeitherDriverNorClock) {
  std::vector<tb_address> blocks;
  std::mt19937_64 random(2);
  std::vector<uint64_t> sizes;
  for (int i = 0; i < 1000; ++i) sizes.push_back(log_uniform(random, 100, 2e6));
  const auto round = [&] {
    for (const uint64_t bytes : sizes) blocks.push_back(pool->allocate(bytes, 0));
    for (const tb_address address : blocks) pool->free(address, 0);
    blocks.clear();
  };
  for (int i = 0; i < 5; ++i) round();
  const int creates = source.creates;
  clock.asked = 0;
  for (int i = 0; i < 20; ++i) round();
  EXPECT_EQ(source.creates, creates);
  EXPECT_EQ(clock.asked, 0);
}

}  // namespace
}  // namespace ocltensor::runtime
