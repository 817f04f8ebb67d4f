// Sorts keys by digits of up to 11 bits: one or two passes where keys have up to 2^22 values.
#include "order.h"

#include <algorithm>
#include <bit>

#include "call/divide_up.h"
#include "call/division.h"
#include "kernels/index.h"
#include "order_params.h"

namespace ocltensor::opencl::index {
namespace {

constexpr int64_t kDigit = 11;
constexpr int64_t kSmallest = 4096;  // keys of a piece
constexpr int64_t kMostPieces = 64;

}  // namespace

Scratch keys_in_order(const OpCall& call, TensorView keys, int64_t limit) {
  const int64_t bits = std::bit_width(static_cast<uint64_t>(limit));
  const int64_t passes = divide_up(bits, kDigit);
  OrderParams p{};
  p.count = keys.numel();
  p.limit = limit;
  p.bits = static_cast<int32_t>(divide_up(bits, passes));
  p.piece = std::max(
      kSmallest, divide_up(p.count, std::min<int64_t>(kMostPieces, 4 * call.caps().compute_units)));
  p.pieces = divide_up(p.count, p.piece);
  const auto bytes = static_cast<uint64_t>(p.count) * 8;
  Scratch sorted = call.scratch(bytes);
  const Scratch spare = call.scratch(passes > 1 ? bytes : 0);
  const Scratch counts = call.scratch(static_cast<uint64_t>(p.pieces << p.bits) * 4);
  const Division division = divide(call.caps(), p.pieces);
  p.per_item = division.per_item;
  Defines d;
  for (int64_t pass = 0; pass < passes; ++pass) {
    const bool to_spare = (passes - 1 - pass) % 2 == 1;
    p.shift = static_cast<int32_t>(pass * p.bits);
    p.first = pass == 0;
    const MemoryRange from = pass == 0 ? MemoryRange(keys) : to_spare ? sorted : spare;
    namespace kernel = kernels::index::order;
    call.launch(kernel::count_digits, d, {.count = counts, .from = from, .p = p})
        .run(division.global, division.local);
    call.launch(kernel::sum_counts, d, {.count = counts, .p = p}).run({1, 1, 1}, {1, 1, 1});
    call.launch(kernel::move, d,
                {.to = to_spare ? spare : sorted, .count = counts, .from = from, .p = p})
        .run(division.global, division.local);
  }
  return sorted;
}

}  // namespace ocltensor::opencl::index
