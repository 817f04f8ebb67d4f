// Sorts keys, and combines runs of equal ones level by level (index/runs.cl).
#include "runs.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "call/divide_up.h"
#include "call/division.h"
#include "call/scalar_bits.h"
#include "kernels/index.h"
#include "ops/sort/sort.h"
#include "order.h"
#include "runs_params.h"

namespace ocltensor::opencl::index {
namespace {

// The sources' shape as runs.cl sees it: each of `count` keys has `lanes` numbers (where keys are
// shared, those of all groups), and the target has `blocks` blocks.
struct Shape {
  int64_t count, lanes, blocks;
};
Shape shape_of(const Accumulation& what) {
  const int64_t blocks =
      what.target_blocks > 0 ? what.target_blocks : what.target.numel() / what.block;
  if (what.shared_keys) return {what.length, what.groups * what.block, blocks};
  return {what.groups * what.length, what.block, blocks};
}

// Sorted keys, each with the position of its source: two arrays, or packed into one.
struct Sorted {
  Scratch keys;
  std::optional<Scratch> positions;
};

Sorted sort_for_cpu(const OpCall& call, TensorView keys, const Shape& shape) {
  const LocalTensor row(keys.address(), DType::Int64, Dims{shape.count});
  return {keys_in_order(call, row, shape.blocks), std::nullopt};
}

Sorted sort_for_gpu(const OpCall& call, TensorView keys, const Shape& shape) {
  const auto bytes = static_cast<uint64_t>(shape.count) * 8;
  Sorted sorted{call.scratch(bytes), call.scratch(bytes)};
  const Dims row{1, shape.count};
  const LocalTensor to(sorted.keys.address(), DType::Int64, row);
  const LocalTensor positions(sorted.positions->address(), DType::Int64, row);
  const TensorView to_view = to.view();
  // Keys of sources that go nowhere have low bits that are above all others.
  sort::Order order;
  order.low_bits = std::bit_width(static_cast<uint64_t>(shape.blocks));
  sort::sort_rows(call, LocalTensor(keys.address(), DType::Int64, row), order, &to_view, positions);
  return sorted;
}

// How many numbers of an entry a work-item combines.
int64_t lanes_of(const OpCall& call, int64_t block) {
  int64_t most = by_style(call, 64, 1);
  while (block % most != 0) most /= 4;
  return most;
}

// Entries of a chunk, the same on all devices of a style, as the rounding of sums depends on it.
// The last level has so few that one chunk of them takes no longer than a chunk of other levels.
int64_t chunk_of(const OpCall& call, int64_t count) {
  const int64_t chunk = by_style<int64_t>(
      call, std::clamp<int64_t>(divide_up(divide_up(count, 64), 8) * 8, 64, 1024), 32);
  return count <= 2 * chunk ? divide_up(count, 8) * 8 : chunk;
}

}  // namespace

const char* refuse_runs(const OpCall&, const Accumulation& what) {
  const Shape shape = shape_of(what);
  if (what.groups > 1 && what.target_blocks > 0 && !what.shared_keys)
    return "each group has keys of its own";
  if (shape.count >= INT32_MAX || shape.blocks >= INT32_MAX) return "2^31 sources or blocks";
  return nullptr;
}

namespace {
constexpr const char* kBusy = "enough independent results keep the processors busy";
constexpr const char* kFew = "there are too few to be worth sorting";
}  // namespace

const char* pass_over_runs_gpu(const OpCall&, const Accumulation& what) {
  constexpr int64_t kItems = 16384;
  if (what.groups * what.block >= kItems) return kBusy;
  return what.length <= 256 ? kFew : nullptr;
}

const char* pass_over_runs_cpu(const OpCall& call, const Accumulation& what) {
  const Shape shape = shape_of(what);
  // Measured on PoCL, 2^20 numbers in rows of 1 to 64: sorting and combining took 5 to 6 times as
  // long as adding the rows one after another on one processor, so this pays on many processors
  // only.
  constexpr int64_t kProcessors = 8, kGroups = 4;
  const int64_t processors = call.caps().compute_units;
  if (processors <= kProcessors) return "the device has few processors";
  if (what.groups >= kGroups * processors) return kBusy;
  return shape.count < 4096 || shape.count * shape.lanes < 65536 ? kFew : nullptr;
}

namespace {

void combine_runs(const OpCall& call, const Accumulation& what, const Shape& shape,
                  const Sorted& sorted) {
  const DType type = what.target.dtype();
  RunsParams p{};
  p.all = shape.count;
  p.lanes = shape.lanes;
  p.block = what.block;
  p.blocks = shape.blocks;
  p.length = what.length;
  p.target_step = what.target_blocks;
  p.source_step = what.one_source ? 0 : 1;
  p.alpha = scalar_bits(what.alpha, type);
  p.extra = what.include_self;
  p.factors_each = what.factors_each;
  const int64_t lanes = lanes_of(call, what.block);
  Accumulation partials = what;  // the partial results of a level, which the next one combines
  partials.source = what.target;
  partials.alpha = 1;
  partials.include_self = true;
  std::optional<Scratch> keys, values;
  for (int64_t level = 0, count = shape.count; count > 0; ++level) {
    p.count = count;
    p.chunk = chunk_of(call, count);
    p.chunks = divide_up(count, p.chunk);
    p.pieces = p.chunks * (p.lanes / lanes);
    const Division division = divide(call.caps(), p.pieces);
    p.per_item = division.per_item;
    count = p.chunks > 1 ? 2 * p.chunks : 0;
    Scratch next_keys = call.scratch(static_cast<uint64_t>(count) * 8);
    Scratch next_values = call.scratch(static_cast<uint64_t>(count * p.lanes * size_of(type)));
    Defines d = accumulation_defines(level == 0 ? what : partials);
    d.set(define::MEAN, what.how == Combine::Mean)
        .set(define::PACKED, !sorted.positions.has_value());
    d.set(define::WEIGHTED, level == 0 && what.factors != nullptr);
    d.set(define::LEVEL, level == 0 ? 0 : 1).set(define::LANES, lanes);
    d.set(define::INDEX, p.pieces * lanes < INT32_MAX ? "uint" : "ulong");
    call.launch(kernels::index::runs::runs, d,
                {.target = what.target,
                 .sorted = sorted.keys,
                 .position = sorted.positions,
                 // Level 0 finds its keys in `sorted`; its sources may have factors, which take the
                 // place of keys.
                 .key = level == 0 ? MemoryRange(what.factors) : MemoryRange(keys),
                 .source = level == 0 ? MemoryRange(what.source) : MemoryRange(values),
                 .part_key = count > 0 ? MemoryRange(next_keys) : nullptr,
                 .partial = count > 0 ? MemoryRange(next_values) : nullptr,
                 .p = p})
        .run(division.global, division.local);
    keys.reset();
    values.reset();
    keys.emplace(std::move(next_keys));
    values.emplace(std::move(next_values));
  }
}

}  // namespace

void accumulate_runs_cpu(const OpCall& call, const Accumulation& what) {
  const Shape shape = shape_of(what);
  combine_runs(call, what, shape, sort_for_cpu(call, what.keys, shape));
}
void accumulate_runs_gpu(const OpCall& call, const Accumulation& what) {
  const Shape shape = shape_of(what);
  combine_runs(call, what, shape, sort_for_gpu(call, what.keys, shape));
}

}  // namespace ocltensor::opencl::index
