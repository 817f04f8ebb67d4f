// Divides reductions into work-items for CPU drivers and for GPUs.
#include "reduction_cut.h"

#include <algorithm>

#include "call/divide_up.h"

namespace ocltensor::opencl::reduce {
namespace {

constexpr int64_t kPieces = 64;      // work-items that a CPU driver should get
constexpr int64_t kSmallest = 8192;  // elements that are worth a work-item

Cut cut_rows(const Problem& p, bool short_rows) {
  const int64_t inner = p.reduced.sizes[0];
  const int64_t outer = inner == 0 ? 0 : p.reduced.numel / inner;
  Cut c{};
  c.kept = p.kept.numel;
  c.count = outer;
  c.kept_per_item =
      std::max(divide_up(c.kept, kPieces), kSmallest / std::max<int64_t>(1, p.reduced.numel));
  c.kept_per_item = std::clamp<int64_t>(c.kept_per_item, 1, c.kept);
  if (short_rows) c.kept_per_item = divide_up(c.kept_per_item, 8) * 8;
  const int64_t wanted = c.kept > kPieces / 2 || short_rows
                             ? 1
                             : std::min(kPieces / c.kept, divide_up(p.reduced.numel, kSmallest));
  const int64_t outer_pieces = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, outer));
  c.chunk = std::max<int64_t>(1, divide_up(outer, outer_pieces));
  const int64_t inner_wanted = std::max<int64_t>(1, wanted / outer_pieces);
  c.inner_chunk = std::max<int64_t>(16, divide_up(divide_up(inner, inner_wanted), 64) * 64);
  c.inner_pieces = std::max<int64_t>(1, divide_up(inner, c.inner_chunk));
  c.pieces = c.inner_pieces * std::max<int64_t>(1, divide_up(outer, c.chunk));
  c.global = {divide_up(c.kept, c.kept_per_item), c.pieces, 1};
  return c;
}

Cut cut_columns(const OpCall& call, const Problem& p, bool narrow) {
  constexpr int64_t kNarrow = 64;  // columns of a work-item of reduction_narrow_columns.cl
  constexpr int64_t kWorthAPass = 32768;
  const int64_t columns = p.kept.sizes[0];
  const int64_t others = p.kept.numel / columns;
  Cut c{};
  c.kept = others;
  c.count = p.reduced.numel;
  c.inner_chunk = narrow ? kNarrow : 1024;  // rows are cut, too, to read long lines of memory
  c.inner_pieces = divide_up(columns, c.inner_chunk);
  const int64_t items = c.inner_pieces * others;
  const int64_t block = std::min(c.inner_chunk, columns) * c.count;
  const auto threads = static_cast<int64_t>(call.caps().compute_units);
  const int64_t wanted = narrow ? std::min(divide_up(threads, items), block / kWorthAPass + 1)
                         : items > kPieces / 2
                             ? 1
                             : std::min(kPieces / items, divide_up(block, kSmallest));
  c.chunk = std::max<int64_t>(1, divide_up(divide_up(c.count, wanted), 4) * 4);
  c.pieces = std::max<int64_t>(1, divide_up(c.count, c.chunk));
  c.global = {items, c.pieces, 1};
  return c;
}

}  // namespace

// An operand that fits the caches is cut along its columns only, so that no second pass has to join
// anything; otherwise lines of memory are read to their full length (plan_columns).
Planned<Cut> plan_narrow_columns(const OpCall& call, const Problem& p) {
  constexpr int64_t kCached = int64_t{1} << 21;
  if (!p.columns) return "what is summed lies side by side";
  if (p.kept.sizes[0] < 16 || p.reduced.rank() != 1) return "lines of memory are too short";
  if (p.kept.numel * p.reduced.numel > kCached) return "the operand leaves the caches";
  return cut_columns(call, p, true);
}
Planned<Cut> plan_columns(const OpCall& call, const Problem& p) {
  if (!p.columns) return "what is summed lies side by side";
  return cut_columns(call, p, false);
}
Planned<Cut> plan_short_rows(const OpCall&, const Problem& p) {
  constexpr int64_t kShort = 128;  // longer rows amortise their own tree of shuffles
  if (p.columns) return "neighbouring results lie side by side";
  if (p.reduced.rank() != 1 || p.reduced.numel < 16 || p.reduced.numel > kShort)
    return "rows do not have 16 to 128 elements";
  if (p.kept.numel < 16) return "there are too few rows";
  return cut_rows(p, true);
}
Planned<Cut> plan_rows(const OpCall&, const Problem& p) { return cut_rows(p, false); }

// As many work-groups as two full waves of a GPU with 2048 work-items per compute unit, and at
// least 16 elements per work-item. One wave leaves a tail, and in the second of one and a half
// waves half the device idles: a sum of 256 MB takes 75, 79 and 71 us on an H200 with 8, 12 and 16
// work-groups per compute unit.
Planned<Cut> plan_gpu(const OpCall& call, const Problem& p) {
  const int64_t group = group_size(call.caps());
  Cut c{};
  c.kept = p.kept.numel;
  c.count = p.reduced.numel;
  const int64_t busy = static_cast<int64_t>(call.caps().compute_units) * 16;
  int64_t lanes = 1;
  if (!p.columns) {
    while (lanes < group && lanes * 8 < c.count) lanes *= 2;
  } else {  // columns: a work-group first covers whole lines of neighbouring outputs
    while (lanes * 32 < group && lanes * 16 < c.count && c.kept * lanes < busy * group) lanes *= 2;
  }
  c.lanes = static_cast<int32_t>(lanes);
  const int64_t groups = divide_up(c.kept, group / lanes);
  const int64_t wanted = groups >= busy / 2 ? 1 : std::min(busy / groups, c.count / (lanes * 16));
  c.chunk = std::max<int64_t>(1, divide_up(c.count, std::max<int64_t>(1, wanted)));
  c.pieces = std::max<int64_t>(1, divide_up(c.count, c.chunk));
  c.global = {groups * group, c.pieces, 1};
  return c;
}

}  // namespace ocltensor::opencl::reduce
