// Checks of copies and fills: odd sizes and offsets, asynchronous copies, patterns, mapping.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "../checks.h"

namespace ocltensor::conformance {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr uint64_t kSize = 8192;

Bytes sequence(uint64_t n, unsigned start) {
  Bytes b(n);
  for (uint64_t i = 0; i < n; ++i) b[i] = static_cast<unsigned char>(start + i * 7 + i / 256);
  return b;
}

Bytes download(Checker& c, tb_address a, uint64_t n) {
  Bytes b(n);
  testing::must(c.api().transfer->to_host, c.stream(), static_cast<void*>(b.data()), a, n, 0u);
  return b;
}

void upload(Checker& c, tb_address a, const Bytes& b) {
  testing::must(c.api().transfer->to_device, c.stream(), a, static_cast<const void*>(b.data()),
                uint64_t{b.size()}, 0u);
}

void odd_copies(Checker& c) {
  const testing::DeviceMemory a(c.backend(), kSize), b(c.backend(), kSize);
  for (const uint64_t n : {0u, 1u, 2u, 3u, 5u, 7u, 8u, 15u, 63u, 64u, 65u, 1000u, 4097u}) {
    for (const uint64_t offset : {0u, 1u, 3u, 4u, 17u, 512u}) {
      Bytes mirror = sequence(kSize, 3);
      upload(c, a.address(), mirror);
      const Bytes part = sequence(n, 91);
      upload(c, a.address() + offset, part);
      std::copy(part.begin(), part.end(), mirror.begin() + static_cast<int64_t>(offset));
      c.expect(download(c, a.address(), kSize) == mirror, "to_device of {} bytes to offset {}", n,
               offset);
      Bytes second = sequence(kSize, 50);
      upload(c, b.address(), second);
      testing::must(c.api().transfer->on_device, c.stream(), b.address() + offset + 2, c.stream(),
                    a.address() + offset, n);
      std::copy_n(mirror.begin() + static_cast<int64_t>(offset), n,
                  second.begin() + static_cast<int64_t>(offset + 2));
      c.expect(download(c, b.address(), kSize) == second, "on_device of {} bytes from offset {}", n,
               offset);
      c.expect(download(c, a.address() + offset, n) == part, "to_host of {} bytes from offset {}",
               n, offset);
    }
  }
}

void fills(Checker& c) {
  const testing::DeviceMemory a(c.backend(), kSize);
  const Bytes pattern = sequence(16, 200);
  for (const uint32_t width : {1u, 2u, 4u, 8u, 16u}) {
    for (const uint64_t count : {0u, 1u, 3u, 17u, 300u}) {
      Bytes mirror = sequence(kSize, 9);
      upload(c, a.address(), mirror);
      const uint64_t offset = width * 3;
      testing::must(c.api().transfer->fill, c.stream(), a.address() + offset,
                    static_cast<const void*>(pattern.data()), width, count * width);
      for (uint64_t i = 0; i < count * width; ++i) mirror[offset + i] = pattern[i % width];
      c.expect(download(c, a.address(), kSize) == mirror, "fill of {} patterns of {} bytes", count,
               width);
    }
  }
  for (const uint32_t width : {0u, 3u, 32u})
    c.expect_status(TB_E_INVALID, "fill with a pattern of a bad width", c.api().transfer->fill,
                    c.stream(), a.address(), static_cast<const void*>(pattern.data()), width,
                    uint64_t{96});
  c.expect_status(TB_E_INVALID, "fill of no whole number of patterns", c.api().transfer->fill,
                  c.stream(), a.address(), static_cast<const void*>(pattern.data()), 8u,
                  uint64_t{12});
}

void asynchronous(Checker& c) {
  void* pinned = nullptr;
  ErrorBuffer error;
  const tb_status status =
      c.api().memory->allocate_host(c.device(), 2 * kSize, &pinned, error.get());
  const bool no_pinned = c.declines("pinned memory", status, error);
  if (!no_pinned) error.raise_if_failed(status);
  auto* host = static_cast<unsigned char*>(pinned);
  const Bytes data = sequence(kSize, 77);
  for (const bool pageable : {false, true}) {
    if (no_pinned && !pageable) continue;
    const testing::DeviceMemory a(c.backend(), kSize);
    Bytes own(2 * kSize);
    unsigned char* source = pageable ? own.data() : host;
    std::copy(data.begin(), data.end(), source);
    testing::must(c.api().transfer->to_device, c.stream(), a.address(),
                  static_cast<const void*>(source), kSize, uint32_t{TB_COPY_ASYNC});
    testing::must(c.api().transfer->to_host, c.stream(), static_cast<void*>(source + kSize),
                  a.address(), kSize, uint32_t{TB_COPY_ASYNC});
    testing::must(c.api().stream->synchronize, c.stream());
    c.expect(std::equal(data.begin(), data.end(), source + kSize),
             "asynchronous copies through {} memory", pageable ? "pageable" : "pinned");
  }
  if (!no_pinned) c.expect_status(TB_OK, "memory.free_host", c.api().memory->free_host, pinned);
}

// A blocking copy lets go of the host memory before it returns.
void blocking(Checker& c) {
  const testing::DeviceMemory a(c.backend(), kSize);
  Bytes data = sequence(kSize, 5);
  const Bytes kept = data;
  upload(c, a.address(), data);
  std::fill(data.begin(), data.end(), static_cast<unsigned char>(0));
  c.expect(download(c, a.address(), kSize) == kept, "to_device read its source after returning");
}

void bad_ranges(Checker& c) {
  if (c.addresses_are_pointers()) return c.decline("addresses are host pointers: not tested");
  const auto& t = *c.api().transfer;
  const testing::DeviceMemory a(c.backend(), 1000);
  Bytes data(4096);
  auto* host = static_cast<void*>(data.data());
  c.expect_status(TB_E_INVALID, "to_host beyond the end", t.to_host, c.stream(), host, a.address(),
                  uint64_t{4096}, 0u);
  c.expect_status(TB_E_INVALID, "to_device beyond the end", t.to_device, c.stream(),
                  a.address() + 999, static_cast<const void*>(host), uint64_t{2}, 0u);
  c.expect_status(TB_E_INVALID, "to_device to an address of nothing", t.to_device, c.stream(),
                  tb_address{0x1000}, static_cast<const void*>(host), uint64_t{2}, 0u);
  c.expect_status(TB_E_INVALID, "fill of address 0", t.fill, c.stream(), tb_address{0},
                  static_cast<const void*>(host), 1u, uint64_t{8});
}

void mapping(Checker& c) {
  const testing::DeviceMemory a(c.backend(), kSize);
  const Bytes data = sequence(kSize, 31);
  upload(c, a.address(), data);
  void* view = nullptr;
  ErrorBuffer error;
  const tb_status status =
      c.api().memory->map(a.address() + 64, 1000, c.stream(), &view, error.get());
  if (status == TB_UNSUPPORTED) return c.decline("map: " + std::string(error.text()));
  c.expect(status == TB_OK && view != nullptr, "memory.map: {}", error.text());
  if (view == nullptr) return;
  c.expect(memcmp(view, data.data() + 64, 1000) == 0, "a mapped view shows other bytes");
  memset(view, 0x42, 1000);
  c.expect_status(TB_OK, "memory.unmap", c.api().memory->unmap, a.address() + 64, view, c.stream());
  const Bytes now = download(c, a.address(), kSize);
  c.expect(std::all_of(now.begin() + 64, now.begin() + 1064, [](auto v) { return v == 0x42; }) &&
               now[63] == data[63] && now[1064] == data[1064],
           "writes through a mapped view are lost");
}

constexpr AbiCheck kList[] = {
    {"odd copies", odd_copies, rule::kTransfer},     {"fills", fills, rule::kTransfer},
    {"async copies", asynchronous, rule::kTransfer}, {"blocking copies", blocking, rule::kTransfer},
    {"bad ranges", bad_ranges, rule::kBounds},       {"mapping", mapping, rule::kMemory}};

}  // namespace

const std::span<const AbiCheck> kTransferChecks = kList;

}  // namespace ocltensor::conformance
