// Ranges of device addresses: uniqueness, guards, reuse, concurrent readers.
#include "runtime/pool/address_space.h"

#include <gmock/gmock.h>

#include <random>
#include <thread>

#include "ocltensor/error.h"

namespace ocltensor::runtime {
namespace {

constexpr uint64_t kSlot = AddressSpace::kSlotBytes;

void* handle(uint64_t n) { return reinterpret_cast<void*>(n); }

TEST(AddressSpace, ResolvesEveryByteAndTheGuardToItsSegment) {
  AddressSpace space(1 << 30);
  const tb_address a = space.acquire(3 * kSlot - 5, handle(1), nullptr);
  const tb_address b = space.acquire(1, handle(2), nullptr);
  EXPECT_EQ(a % kSlot, 0u);
  for (const uint64_t offset : {uint64_t{0}, kSlot, 3 * kSlot - 6, 3 * kSlot - 5, 4 * kSlot - 1}) {
    const Location at = space.resolve(a + offset);
    EXPECT_EQ(at.segment, handle(1));
    EXPECT_EQ(at.offset, offset);
    EXPECT_EQ(at.base, a);
    EXPECT_EQ(at.bytes, 3 * kSlot - 5);
  }
  EXPECT_EQ(space.resolve(b + 1).segment, handle(2));
  EXPECT_FALSE(space.resolve(0));
  EXPECT_FALSE(space.resolve(a - 1));
  EXPECT_FALSE(space.resolve(space.base() + space.bytes()));
  EXPECT_FALSE(space.resolve(~uint64_t{0}));
}

TEST(AddressSpace, AMultipleOfASlotStillHasAGuard) {
  AddressSpace space(1 << 30);
  const tb_address a = space.acquire(2 * kSlot, handle(1), nullptr);
  const tb_address b = space.acquire(2 * kSlot, handle(2), nullptr);
  EXPECT_EQ(space.resolve(a + 2 * kSlot).segment, handle(1));
  EXPECT_EQ(space.resolve(b + 2 * kSlot).segment, handle(2));
}

TEST(AddressSpace, ReleasedRangesCoalesceInAnyOrder) {
  AddressSpace space(1 << 30);
  const uint64_t all = space.free_slots();
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<tb_address> bases;
    for (int i = 0; i < 12; ++i)
      bases.push_back(space.acquire(random() % (20 * kSlot) + 1, handle(i + 1), nullptr));
    std::shuffle(bases.begin(), bases.end(), random);
    for (const tb_address base : bases) {
      space.release(base);
      EXPECT_FALSE(space.resolve(base));
    }
    EXPECT_EQ(space.free_ranges(), 1u);
    EXPECT_EQ(space.free_slots(), all);
  }
}

TEST(AddressSpace, PutsASegmentIntoTheSmallestHole) {
  AddressSpace space(1 << 30);
  const tb_address big = space.acquire(9 * kSlot, handle(1), nullptr);
  space.acquire(1, handle(2), nullptr);
  const tb_address small = space.acquire(4 * kSlot, handle(3), nullptr);
  space.acquire(1, handle(4), nullptr);
  space.release(big);
  space.release(small);
  EXPECT_EQ(space.acquire(3 * kSlot, handle(5), nullptr), small);
  EXPECT_EQ(space.acquire(5 * kSlot, handle(6), nullptr), big);
}

TEST(AddressSpace, SaysWhenItIsFullAndGoesOn) {
  AddressSpace space(64 << 20);
  const tb_address base = space.acquire(40 << 20, handle(1), nullptr);
  try {
    space.acquire(40 << 20, handle(2), nullptr);
    FAIL() << "32 slots hold no two segments of 20";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), TB_E_OUT_OF_MEMORY);
  }
  EXPECT_THROW(space.acquire(~uint64_t{0}, handle(2), nullptr), Error);
  space.release(base);
  EXPECT_EQ(space.acquire(40 << 20, handle(2), nullptr), base);
  EXPECT_THROW(space.release(base + kSlot), Error);
  EXPECT_THROW(space.release(12345), Error);
}

TEST(AddressSpace, ReservesATebibyteOrWhatThereIs) {
  AddressSpace space;
  EXPECT_GE(space.bytes(), uint64_t{1} << 30);
  EXPECT_TRUE(space.resolve(space.acquire(100, handle(1), nullptr)));
}

TEST(AddressSpace, ReadersNeedNoLock) {
  AddressSpace space(1 << 30);
  const tb_address kept = space.acquire(kSlot, handle(77), nullptr);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&, i] {
      std::mt19937_64 random(i);
      while (!stop) {
        if (space.resolve(kept + 9).segment != handle(77)) ++wrong;
        space.resolve(space.base() + random() % space.bytes());  // may be stale, must not crash
      }
    });
  for (int i = 0; i < 5000; ++i)
    space.release(space.acquire(i % 7 * kSlot + 1, handle(3), nullptr));
  stop = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace ocltensor::runtime
