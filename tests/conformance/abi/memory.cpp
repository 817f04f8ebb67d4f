// Checks of the memory part: addresses, stream-ordered frees, statistics, limits, pinned memory.
#include <algorithm>
#include <cstring>

#include "../checks.h"

namespace ocltensor::conformance {
namespace {

tb_address allocate(Checker& c, uint64_t bytes) {
  tb_address address = 0;
  testing::must(c.api().memory->allocate, c.device(), bytes, c.stream(), &address);
  return address;
}

void release(Checker& c, tb_address address) {
  c.expect_status(TB_OK, "memory.free", c.api().memory->free, address, c.stream());
}

bool declines_stats(Checker& c) {
  tb_memory_stats s{};
  s.struct_size = sizeof s;
  ErrorBuffer error;
  return c.declines("memory.stats", c.api().memory->stats(c.device(), &s, error.get()), error);
}

tb_memory_stats stats(Checker& c) {
  tb_memory_stats s{};
  s.struct_size = sizeof s;
  c.expect_status(TB_OK, "memory.stats", c.api().memory->stats, c.device(), &s);
  return s;
}

void addresses(Checker& c) {
  struct Range {
    tb_address address;
    uint64_t bytes;
  };
  std::vector<Range> ranges;
  for (const uint64_t bytes :
       {1u, 2u, 3u, 511u, 512u, 513u, 4095u, 4096u, 4097u, 100000u, 1048577u}) {
    const tb_address a = allocate(c, bytes);
    c.expect(a != 0 && a % 512 == 0, "{} bytes lie at {:#x}, not aligned to 512", bytes, a);
    ranges.push_back({a, bytes});
  }
  for (const Range& r : ranges) {
    for (const Range& other : ranges)
      c.expect(&r == &other || r.address + r.bytes < other.address ||
                   other.address + other.bytes <= r.address,
               "{:#x} + {} and {:#x} overlap, or the first's end is the second's beginning",
               r.address, r.bytes, other.address);
    for (const uint64_t offset : {uint64_t{0}, r.bytes / 2, r.bytes - 1}) {
      tb_memory_info info{};
      info.struct_size = sizeof info;
      c.expect_status(TB_OK, "memory.info", c.api().memory->info, r.address + offset, &info);
      c.expect(info.base == r.address && info.size == r.bytes && info.device == c.device(),
               "memory.info of {:#x}: base {:#x}, size {}, device {}", r.address + offset,
               info.base, info.size, info.device);
    }
  }
  std::rotate(ranges.begin(), ranges.begin() + 4, ranges.end());
  for (const Range& r : ranges) release(c, r.address);
}

void nothing(Checker& c) {
  tb_address address = 1;
  c.expect_status(TB_OK, "memory.allocate of 0 bytes", c.api().memory->allocate, c.device(),
                  uint64_t{0}, c.stream(), &address);
  c.expect(address == 0, "0 bytes have the address {:#x}", address);
  c.expect_status(TB_OK, "memory.free of address 0", c.api().memory->free, tb_address{0},
                  c.stream());
}

void bad_addresses(Checker& c) {
  tb_memory_info info{};
  info.struct_size = sizeof info;
  c.expect_status(TB_E_INVALID, "memory.info of an address of nothing", c.api().memory->info,
                  tb_address{0x1234}, &info);
  c.expect_status(TB_E_INVALID, "memory.free of an address of nothing", c.api().memory->free,
                  tb_address{0x1234}, c.stream());
  const tb_address a = allocate(c, 4096);
  c.expect_status(TB_E_INVALID, "memory.free of an address inside", c.api().memory->free, a + 64,
                  c.stream());
  release(c, a);
  c.expect_status(TB_E_INVALID, "memory.free, a second time", c.api().memory->free, a, c.stream());
  tb_address out = 0;
  ErrorBuffer error;
  c.expect(c.api().memory->allocate(99, 64, c.stream(), &out, error.get()) < 0,
           "memory.allocate on device 99 succeeds");
}

// Memory freed after work on it was enqueued must not be given to others before that work is done.
void stream_order(Checker& c) {
  constexpr size_t kBytes = 1 << 16;
  const auto& transfer = *c.api().transfer;
  std::vector<unsigned char> result(kBytes);
  for (int round = 0; round < 20; ++round) {
    const tb_address a = allocate(c, kBytes), kept = allocate(c, kBytes);
    const auto value = static_cast<unsigned char>(round + 1);
    const unsigned char other = 0xee;
    testing::must(transfer.fill, c.stream(), a, static_cast<const void*>(&value), 1u,
                  uint64_t{kBytes});
    testing::must(transfer.on_device, c.stream(), kept, c.stream(), a, uint64_t{kBytes});
    release(c, a);
    const tb_address b = allocate(c, kBytes);
    testing::must(transfer.fill, c.stream(), b, static_cast<const void*>(&other), 1u,
                  uint64_t{kBytes});
    testing::must(transfer.to_host, c.stream(), static_cast<void*>(result.data()), kept,
                  uint64_t{kBytes}, 0u);
    c.expect(std::all_of(result.begin(), result.end(), [&](auto v) { return v == value; }),
             "round {}: memory was reused before earlier work on it", round);
    release(c, b);
    release(c, kept);
  }
}

void statistics(Checker& c) {
  if (declines_stats(c)) return;
  const auto& memory = *c.api().memory;
  c.expect_status(TB_OK, "device.synchronize", c.api().device->synchronize, c.device());
  c.expect_status(TB_OK, "memory.reset_peak_stats", memory.reset_peak_stats, c.device());
  c.expect_status(TB_OK, "memory.reset_accumulated_stats", memory.reset_accumulated_stats,
                  c.device());
  const tb_memory_stats before = stats(c);
  const tb_address a = allocate(c, 1000), b = allocate(c, 70000);
  const tb_memory_stats during = stats(c);
  c.expect(during.requested_bytes.current - before.requested_bytes.current == 71000,
           "requested bytes grew by {}",
           during.requested_bytes.current - before.requested_bytes.current);
  c.expect(during.requested_bytes.allocated == 71000, "accumulated requests are {}",
           during.requested_bytes.allocated);
  c.expect(during.allocations.current - before.allocations.current == 2, "live blocks grew by {}",
           during.allocations.current - before.allocations.current);
  c.expect(during.allocated_bytes.current >= during.requested_bytes.current,
           "allocated bytes {} are below those requested {}", during.allocated_bytes.current,
           during.requested_bytes.current);
  c.expect(during.reserved_bytes.current >= during.allocated_bytes.current,
           "reserved bytes {} are below those allocated {}", during.reserved_bytes.current,
           during.allocated_bytes.current);
  release(c, a);
  release(c, b);
  c.expect_status(TB_OK, "device.synchronize", c.api().device->synchronize, c.device());
  const tb_memory_stats after = stats(c);
  c.expect(after.requested_bytes.current == before.requested_bytes.current,
           "requested bytes were {} before and are {} after", before.requested_bytes.current,
           after.requested_bytes.current);
  c.expect(after.requested_bytes.peak >= during.requested_bytes.current, "the peak {} was higher",
           after.requested_bytes.peak);
  c.expect(after.requested_bytes.freed == 71000, "accumulated frees are {}",
           after.requested_bytes.freed);
  c.expect(after.allocated_bytes.current == before.allocated_bytes.current, "allocated bytes leak");
  c.expect_status(TB_OK, "memory.empty_cache", memory.empty_cache, c.device());
  const tb_memory_stats empty = stats(c);
  c.expect(empty.reserved_bytes.current <= after.reserved_bytes.current,
           "empty_cache: reserved bytes grew");
  c.cite(rule::kSizes);
  tb_memory_stats small{};
  small.struct_size = TB_MEMORY_STATS_SIZE_V1 - 8;
  c.expect_status(TB_E_INVALID, "memory.stats into a structure that is too small", memory.stats,
                  c.device(), &small);
}

void limits(Checker& c) {
  const auto& memory = *c.api().memory;
  ErrorBuffer none;
  if (c.declines("memory.set_fraction", memory.set_fraction(c.device(), 0.0, none.get()), none))
    return;
  if (declines_stats(c)) return;
  for (const double bad : {-0.1, 2.1, 1e9})
    c.expect_status(TB_E_INVALID, "memory.set_fraction outside 0..2", memory.set_fraction,
                    c.device(), bad);
  c.expect_status(TB_E_INVALID, "memory.set_watermarks below 0", memory.set_watermarks, c.device(),
                  -1.0, 0.0);
  const tb_memory_stats now = stats(c);
  if (now.recommended_bytes == 0) return c.decline("no recommended memory: limits not tested");
  const double fraction =
      (static_cast<double>(now.driver_bytes) + 64e6) / static_cast<double>(now.recommended_bytes);
  ErrorBuffer error;
  const tb_status set = memory.set_fraction(c.device(), fraction, error.get());
  if (set == TB_UNSUPPORTED) return c.decline("no limits: " + std::string(error.text()));
  c.expect(set == TB_OK, "memory.set_fraction({}): {}", fraction, error.text());
  tb_address a = 0, b = 0;
  const uint64_t too_much = uint64_t{1} << 30;
  c.expect_status(TB_E_OUT_OF_MEMORY, "an allocation above the limit", memory.allocate, c.device(),
                  too_much, c.stream(), &a);
  c.expect_status(TB_OK, "a small allocation after out of memory", memory.allocate, c.device(),
                  uint64_t{4096}, c.stream(), &b);
  if (b != 0) release(c, b);
  c.expect(stats(c).out_of_memory_errors > now.out_of_memory_errors,
           "out_of_memory_errors does not count");
  c.expect_status(TB_OK, "memory.set_fraction(0)", memory.set_fraction, c.device(), 0.0);
  c.expect_status(TB_OK, "memory.set_watermarks", memory.set_watermarks, c.device(), 1.7, 1.4);
}

void impossible(Checker& c) {
  tb_address a = 0;
  for (const uint64_t bytes : {uint64_t{1} << 55, ~uint64_t{0}, ~uint64_t{0} - 4096})
    c.expect_status(TB_E_OUT_OF_MEMORY, "an allocation that no machine has",
                    c.api().memory->allocate, c.device(), bytes, c.stream(), &a);
  release(c, allocate(c, 4096));
}

void pinned(Checker& c) {
  const auto& memory = *c.api().memory;
  void* p = nullptr;
  ErrorBuffer error;
  const tb_status status = memory.allocate_host(c.device(), 64, &p, error.get());
  if (c.declines("pinned memory", status, error)) return;
  if (status == TB_OK) c.expect_status(TB_OK, "memory.free_host", memory.free_host, p);
  p = nullptr;
  c.expect_status(TB_OK, "memory.allocate_host", memory.allocate_host, c.device(), uint64_t{10000},
                  &p);
  if (p == nullptr) return;
  memset(p, 7, 10000);
  int32_t is_pinned = 0;
  c.expect_status(TB_OK, "memory.is_host", memory.is_host, static_cast<const void*>(p), &is_pinned);
  c.expect(is_pinned == 1, "pinned memory is not recognised");
  c.expect_status(TB_OK, "memory.is_host", memory.is_host,
                  static_cast<const void*>(static_cast<char*>(p) + 9999), &is_pinned);
  c.expect(is_pinned == 1, "the last byte of pinned memory is not recognised");
  int local = 0;
  c.expect_status(TB_OK, "memory.is_host", memory.is_host, static_cast<const void*>(&local),
                  &is_pinned);
  c.expect(is_pinned == 0, "the stack passes for pinned memory");
  const tb_address a = allocate(c, 10000);
  testing::must(c.api().transfer->to_device, c.stream(), a, static_cast<const void*>(p),
                uint64_t{10000}, uint32_t{TB_COPY_ASYNC});
  c.expect_status(TB_OK, "memory.free_host while a copy uses it", memory.free_host, p);
  std::vector<unsigned char> back(10000);
  testing::must(c.api().transfer->to_host, c.stream(), static_cast<void*>(back.data()), a,
                uint64_t{10000}, 0u);
  c.expect(std::all_of(back.begin(), back.end(), [](auto v) { return v == 7; }),
           "free_host did not wait for the copy");
  release(c, a);
}

constexpr AbiCheck kList[] = {
    {"addresses", addresses, rule::kMemory},         {"zero bytes", nothing, rule::kMemory},
    {"bad addresses", bad_addresses, rule::kMemory}, {"stream order", stream_order, rule::kMemory},
    {"statistics", statistics, rule::kStatistics},   {"limits", limits, rule::kMemory},
    {"impossible sizes", impossible, rule::kMemory}, {"pinned memory", pinned, rule::kMemory}};

}  // namespace

const std::span<const AbiCheck> kMemoryChecks = kList;

}  // namespace ocltensor::conformance
