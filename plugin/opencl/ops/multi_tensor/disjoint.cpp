// Sorts memory ranges by address and checks them in one sweep.
#include "disjoint.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace ocltensor::opencl::multi_tensor {
namespace {

bool is_before(const Used& a, const Used& b) { return a.begin < b.begin; }

// Radix sort by the bytes of the addresses: a call has hundreds of ranges in any order, for which
// std::sort would make thousands of comparisons and mispredict half of them.
void sort_by_address(std::vector<Used>& used) {
  tb_address all_ones = ~tb_address{0}, any_ones = 0;
  for (const Used& u : used) all_ones &= u.begin, any_ones |= u.begin;
  const tb_address differing = all_ones ^ any_ones;
  std::vector<Used> sorted(used.size());
  for (int shift = 0; shift < 64; shift += 8) {
    if ((differing >> shift & 0xff) == 0) continue;
    const auto digit = [&](const Used& u) { return u.begin >> shift & 0xff; };
    std::array<uint32_t, 257> start{};
    for (const Used& u : used) ++start[digit(u) + 1];
    for (size_t d = 1; d < start.size(); ++d) start[d] += start[d - 1];
    for (const Used& u : used) sorted[start[digit(u)]++] = u;
    used.swap(sorted);
  }
}

}  // namespace

bool are_disjoint(std::vector<Used>& used) {
  constexpr size_t kFew = 64;
  if (used.size() < kFew)
    std::sort(used.begin(), used.end(), is_before);
  else if (!std::is_sorted(used.begin(), used.end(), is_before))
    sort_by_address(used);
  tb_address end = 0, written_end = 0;  // the furthest ends so far: of all, of those written
  for (const Used& u : used) {
    if (u.begin < (u.written ? end : written_end)) return false;
    end = std::max(end, u.end);
    if (u.written) written_end = std::max(written_end, u.end);
  }
  return true;
}

}  // namespace ocltensor::opencl::multi_tensor
