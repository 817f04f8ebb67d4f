// Division by multipliers: each divisor and dividend at the limits of both widths, and random ones,
// as the kernels compute it and by the device itself.
#include "call/quotient.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "plugin/any_call.h"

namespace ocltensor::opencl {
namespace {

constexpr IndexWidth kWidths[] = {IndexWidth::Bits32, IndexWidth::Bits64};

int64_t largest(IndexWidth width) { return width == IndexWidth::Bits32 ? INT32_MAX : INT64_MAX; }

// kernels/include/quotient.h in C++.
int64_t divide(int64_t n, const Quotient& q, IndexWidth width) {
  __extension__ using Wide = unsigned __int128;
  const auto bits = static_cast<uint32_t>(width);
  return static_cast<int64_t>(
      static_cast<uint64_t>(Wide{static_cast<uint64_t>(n) << 1} * q.multiplier >> bits) >> q.shift);
}

// 1, the neighbours of all powers of 2, and the largest.
std::vector<int64_t> edges(IndexWidth width) {
  std::vector<int64_t> list;
  for (uint32_t bit = 0; bit < static_cast<uint32_t>(width) - 1; ++bit)
    for (int64_t by = -2; by <= 2; ++by)
      if (const int64_t n = (int64_t{1} << bit) + by; n >= 0) list.push_back(n);
  for (int64_t by = 0; by < 3; ++by) list.push_back(largest(width) - by);
  return list;
}

// Dividends around which a multiplier that is too small or too large shows first.
std::vector<int64_t> dividends(int64_t divisor, IndexWidth width) {
  std::vector<int64_t> list = edges(width);
  const int64_t most = largest(width) / divisor;
  for (const int64_t times : {int64_t{1}, most / 2, most - 1, most}) {
    const int64_t multiple = std::max<int64_t>(times, 1) * divisor;
    list.insert(list.end(), {multiple - 1, multiple});
    if (multiple < largest(width)) list.push_back(multiple + 1);
  }
  return list;
}

TEST(Quotients, AreExactAtTheLimits) {
  for (const IndexWidth width : kWidths)
    for (const int64_t divisor : edges(width)) {
      if (divisor == 0) continue;
      const Quotient q = quotient_by(divisor, width);
      ASSERT_LE(q.multiplier, width == IndexWidth::Bits32 ? UINT32_MAX : UINT64_MAX) << divisor;
      for (const int64_t n : dividends(divisor, width))
        ASSERT_EQ(divide(n, q, width), n / divisor) << n << " by " << divisor;
    }
}

TEST(Quotients, OfRandomNumbersAreExact) {
  std::mt19937_64 random(7);
  for (const IndexWidth width : kWidths)
    for (int i = 0; i < 200'000; ++i) {
      const auto draw = [&] {  // of any magnitude
        return static_cast<int64_t>(random() >> 1) & (largest(width) >> (random() % 31));
      };
      const int64_t divisor = std::max<int64_t>(1, draw() >> (random() % 31)), n = draw();
      ASSERT_EQ(divide(n, quotient_by(divisor, width), width), n / divisor)
          << n << " by " << divisor;
    }
}

TEST(Quotients, OfTheDeviceAreExact) {
  constexpr size_t kWords = 4;  // dividend, multiplier, shift, result
  static const Source kSource{"test/quotients.cl", R"(#include "quotient.h"
__kernel void quotients(__global ulong *base, ulong offset, int narrow) {
  __global ulong *p = base + offset / 8 + 4 * get_global_id(0);
  p[3] = narrow ? quotient_uint((uint)p[0], p[1], (uint)p[2]) : quotient_ulong(p[0], p[1], (uint)p[2]);
})"};
  const AnyCall call;
  Stream& stream = (*call).stream();
  for (const IndexWidth width : kWidths) {
    std::vector<uint64_t> words;
    std::vector<int64_t> expected;
    for (const int64_t divisor : edges(width)) {
      if (divisor == 0) continue;
      const Quotient q = quotient_by(divisor, width);
      for (const int64_t n : dividends(divisor, width)) {
        words.insert(words.end(), {static_cast<uint64_t>(n), q.multiplier, q.shift, 0});
        expected.push_back(n / divisor);
      }
    }
    const uint64_t bytes = words.size() * sizeof words[0];
    const Scratch memory = (*call).scratch(bytes);
    const Place place = resolve(memory.address(), 0, static_cast<int64_t>(bytes));
    stream.write(place.buffer, place.offset, words.data(), bytes, false);
    Launch launch(stream, find_kernel(stream, kSource, "quotients", {}));
    launch.memory(memory).value(width == IndexWidth::Bits32 ? 1 : 0);
    launch.run({static_cast<int64_t>(expected.size()), 1, 1}, {0, 0, 0});
    stream.read(words.data(), place.buffer, place.offset, bytes, false);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(words[kWords * i + 3], static_cast<uint64_t>(expected[i])) << words[kWords * i];
  }
}

}  // namespace
}  // namespace ocltensor::opencl
