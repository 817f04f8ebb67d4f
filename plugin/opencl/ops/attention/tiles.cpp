// Attention on GPUs without a matrix of scores: launches kernels/attention/tiles_*.cl.
#include <array>
#include <limits>

#include "call/divide_up.h"
#include "fused.h"
#include "kernels/attention.h"
#include "vector_operand.h"

namespace ocltensor::opencl::attention {
namespace {

// Values of kernels/include/attention_tiles.h.
constexpr int64_t kKeys = 64;       // at once
constexpr int64_t kLeastRows = 64;  // of a work-group
constexpr int64_t kVector = 4;      // elements that kernels read at once

// How kernels are specialised for the width of heads.
struct Form {
  int64_t depth, rows, items;
  int64_t step = 8;  // rows of operands in local memory at once, of two buffers

  int64_t local_memory() const {
    const int64_t pitch = rows + 4;
    return (2 * step * (pitch + std::max(depth, pitch)) + kKeys * pitch) *
           static_cast<int64_t>(sizeof(float));
  }
};
constexpr std::array<Form, 3> kForms{{{32, 64, 64}, {64, 64, 64}, {128, 64, 128}}};
// For compilers that reorder reads of local memory: half of the scores and sums an item.
constexpr std::array<Form, 3> kHalfForms{{{32, 64, 64}, {64, 64, 128}, {128, 64, 128}}};

const char* refuse(const OpCall& call, const FusedProblem& p) {
  if (p.type != DType::Float32) return "not computed in float32";
  if (!call.caps().large_register_tiles()) return "a work-item has too few registers";
  if (p.depth % kVector != 0 || p.width % kVector != 0) return "heads are no multiples of 4 wide";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() - 2 * kKeys;
  if (std::max(p.queries, p.keys) > kMost ||
      divide_up(p.queries, kLeastRows) > kMost / (p.batch * p.heads))
    return "the sizes need 64 bits";
  return nullptr;
}

Planned<Form> plan_forward(const OpCall& call, const FusedProblem& p) {
  if (const char* reason = refuse(call, p)) return reason;
  if (!p.outs[0].wanted()) return "the result is not wanted";
  if (p.width > 1 && p.outs[0].strides[3] != 1)
    return "the columns of the result are not neighbours";
  for (const Form& form : call.caps().steps_at_once >= kAllSteps ? kForms : kHalfForms) {
    if (form.depth < p.width) continue;
    if (call.caps().max_work_group_size < form.items) return "work-groups are too small";
    if (call.caps().local_memory < static_cast<uint64_t>(form.local_memory()))
      return "too little local memory";
    return form;
  }
  return "a head is wider than 128";
}

// Tiles of a few queries, or of narrow heads, would be empty in part. Products of wide heads are
// faster than these tiles, which read local memory more often (H200, 2048 x 128: 3.7 and 4.5 ms),
// unless many of a causal block's scores are masked, which are a smaller part of longer rows.
const char* pass_over(const OpCall&, const FusedProblem& p) {
  constexpr int64_t kLongCausal = 4096;
  if (p.queries < kLeastRows / 2) return "too few queries to fill a tile";
  if (p.width <= 16) return "heads are too narrow to fill a tile";
  if (p.width <= 64 || (p.block.causal && p.keys <= kLongCausal)) return nullptr;
  return "products of wide heads are faster";
}

Defines defines_of(const OpCall& call, const FusedProblem& p, const Form& form) {
  return block_defines(p.block)
      .type(define::TYPE, call.args().tensor(Arg::query).dtype())
      .set(define::DEPTH, form.depth)
      .set(define::BM, form.rows)
      .set(define::ITEMS, form.items)
      .set(define::BK, form.step);
}

// Heads that are taken together. Of causal tiles the longest come first in each bundle; so many
// that a compute unit has several of each length, which are even at the end. Other heads are taken
// one by one, so that tiles that run at a time share keys and values.
int64_t bundle_of(const OpCall& call, const FusedProblem& p, const Form& form) {
  constexpr int64_t kTilesOfUnit = 8;
  if (!p.block.causal) return 1;
  const int64_t heads = p.batch * p.heads, tiles = divide_up(p.queries, form.rows);
  const int64_t most = divide_up(kTilesOfUnit * call.caps().compute_units, tiles);
  return divide_up(heads, divide_up(heads, most));  // bundles are equal
}

void run_forward(const OpCall& call, const FusedProblem& p, const Form& form) {
  const auto& args = call.args();
  const VectorOperand query(call, args.tensor(Arg::query), kVector),
      key(call, args.tensor(Arg::key), kVector), value(call, args.tensor(Arg::value), kVector);
  const LocalTensor logsumexp = p.outs[1].tensor();
  ContiguousOutput sums(call, logsumexp);
  FlashParams f = forward_params(p, query, key, value);
  f.bundle = bundle_of(call, p, form);
  const int64_t tiles = divide_up(p.queries, form.rows) * p.batch * p.heads;
  call.launch(kernels::attention::tiles_forward::attention_tiles, defines_of(call, p, form),
              {.out = p.outs[0].tensor(),
               .sums = p.outs[1].wanted() ? MemoryRange(sums.view()) : nullptr,
               .query = query,
               .key = key,
               .value = value,
               .mask = memory_of_mask(p.block),
               .p = f})
      .run({tiles * form.items, 1, 1}, {form.items, 1, 1});
  sums.finish();
}

}  // namespace

constinit const FusedAlgorithm kTilesForward({.id = "attention_forward.tiles",
                                              .description = "tiles of scores in registers",
                                              .style = DeviceStyle::Gpu},
                                             Steps<plan_forward, run_forward>(), pass_over);

}  // namespace ocltensor::opencl::attention
