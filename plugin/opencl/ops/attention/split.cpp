// Attention of few queries over many keys, as of a step of a language model: launches
// kernels/attention/split_*.cl. Keys are cut into pieces, so that every compute unit has some, and
// the queries that share a key head read each key once.
#include <bit>

#include "call/divide_up.h"
#include "call/division.h"
#include "fused.h"
#include "kernels/attention.h"
#include "vector_operand.h"

namespace ocltensor::opencl::attention {
namespace {

constexpr int64_t kMostQueries = 8;
constexpr int64_t kKeys = 64;    // of a block in the kernels
constexpr int64_t kItems = 128;  // of a work-group of split_gpu.cl
constexpr int64_t kMostColumns = 256;

int64_t vector_of(const OpCall& call) { return by_style<int64_t>(call, 16, 4); }

// Bytes of local memory that a work-group of split_gpu.cl takes for so many queries.
int64_t local_bytes(const FusedProblem& p, int64_t rows) {
  constexpr int64_t kLanes = 8, kTops = 8;
  const int64_t parts = kLanes * (rows * kKeys + 4), results = 4 * kItems * rows;
  return 4 * (std::max(parts, results) + rows * (p.depth + 2 * kKeys + kTops) + 1);
}

// Queries that work-items take at once.
int64_t rows_of(const OpCall& call, const FusedProblem& p) {
  const bool gpu = by_style(call, false, true);
  const int64_t most = !gpu || call.caps().large_register_tiles() ? 8 : 4;
  const int64_t all = p.groups() * p.queries;
  int64_t rows = std::min(most, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(all))));
  const auto has_room = [&] {
    return local_bytes(p, rows) <= static_cast<int64_t>(call.caps().local_memory);
  };
  while (gpu && rows > 1 && !has_room()) rows /= 2;
  return rows;
}

// Blocks of queries, of all key heads.
int64_t blocks_of(const FusedProblem& p, int64_t rows) {
  return p.batch * p.key_heads * divide_up(p.groups() * p.queries, rows);
}

const char* refuse_gpu(const OpCall& call, const FusedProblem& p) {
  constexpr int64_t kMostBlocks = 65535;  // NVIDIA's work-groups along a second dimension
  const int64_t rows = rows_of(call, p);
  if (call.caps().max_work_group_size < static_cast<size_t>(kItems))
    return "work-groups are too small";
  if (local_bytes(p, rows) > static_cast<int64_t>(call.caps().local_memory))
    return "local memory is too small";
  return blocks_of(p, rows) > kMostBlocks ? "more than 65535 blocks of queries" : nullptr;
}

const char* refuse(const OpCall& call, const FusedProblem& p) {
  if (p.type != DType::Float32) return "not computed in float32";
  if (p.queries > kMostQueries) return "more than 8 queries";
  if (p.block.dropout > 0) return "dropout";
  if (!p.outs[0].wanted()) return "the result is not wanted";
  if (p.depth == 0 || p.width == 0 || p.depth % vector_of(call) != 0 ||
      p.width % vector_of(call) != 0)
    return "heads are not of whole vectors";
  if (std::max(p.depth, p.width) > kMostColumns) return "a head is wider than 256";
  if (p.width > 1 && p.outs[0].strides[3] != 1)
    return "the columns of the result are not neighbours";
  return by_style(call, false, true) ? refuse_gpu(call, p) : nullptr;
}

// As measured on PoCL (bench/history.md): whatever there are, 64 keys are worked on.
const char* pass_over(const OpCall&, const FusedProblem& p) {
  return p.keys < (p.queries > 1 ? 2 : 1) * kKeys ? "few keys" : nullptr;
}

// Keys of a piece: several pieces for each compute unit, of several blocks each.
int64_t keys_of_piece(const OpCall& call, const FusedProblem& p, int64_t heads) {
  const int64_t units = call.caps().compute_units * by_style(call, 2, 4);
  const int64_t least = kKeys * by_style(call, 8, 2);
  const int64_t pieces = std::clamp<int64_t>(divide_up(units, heads), 1, divide_up(p.keys, least));
  return divide_up(divide_up(p.keys, pieces), kKeys) * kKeys;
}

void run(const OpCall& call, const FusedProblem& p) {
  const auto& args = call.args();
  const VectorOperand query(call, args.tensor(Arg::query), vector_of(call)),
      key(call, args.tensor(Arg::key), vector_of(call)),
      value(call, args.tensor(Arg::value), vector_of(call));
  const LocalTensor logsumexp = p.outs[1].tensor();
  ContiguousOutput sums(call, logsumexp);
  FlashParams f = forward_params(p, query, key, value);
  const int64_t rows = rows_of(call, p);
  const int64_t heads = blocks_of(p, rows);
  f.keys_at_once = keys_of_piece(call, p, heads);
  const int64_t pieces = divide_up(p.keys, f.keys_at_once);
  f.piece_step = pieces;
  const int64_t all_rows = p.batch * p.heads * p.queries;
  const Scratch parts = call.scratch(static_cast<uint64_t>(all_rows * pieces * (p.width + 2)) * 4);
  const DType type = args.tensor(Arg::query).dtype();
  Defines d = block_defines(p.block).type(define::TYPE, type);
  d.set(define::DEPTH, p.depth).set(define::WIDTH, p.width).set(define::ROWS, rows);
  const auto launch = [&](const auto& kernel, const Defines& defines, int64_t items) {
    call.launch(kernel, defines,
                {.parts = parts,
                 .query = query,
                 .key = key,
                 .value = value,
                 .mask = memory_of_mask(p.block),
                 .p = f})
        .run({pieces * items, heads, 1}, {items, 1, 1});
  };
  if (by_style(call, true, false))
    launch(kernels::attention::split_cpu::attention_split, d.set(define::FAST_EXP, 1), 1);
  else
    launch(kernels::attention::split_gpu::attention_split, d, kItems);
  const int64_t group = std::min<int64_t>(64, call.caps().max_work_group_size);
  Defines join;
  join.type(define::TYPE, p.outs[0].dtype).set(define::WIDTH, p.width);
  call.launch(kernels::attention::split_join::attention_join, join,
              {.out = p.outs[0].tensor(),
               .sums = p.outs[1].wanted() ? MemoryRange(sums.view()) : nullptr,
               .parts = parts,
               .p = f})
      .run({divide_up(all_rows * p.width, group) * group, 1, 1}, {group, 1, 1});
  sums.finish();
}

}  // namespace

// As measured on an H200 (bench/history.md): of 16 queries a key head matrix units are as fast.
const char* pass_over_few_queries(const OpCall& call, const FusedProblem& p) {
  const bool suits = p.groups() * p.queries <= kMostQueries && pass_over(call, p) == nullptr;
  return suits && refuse(call, p) == nullptr ? "few queries: keys are cut into pieces" : nullptr;
}

constinit const FusedAlgorithm kSplitForward(
    {.id = "attention_forward.split", .description = "few queries: keys are cut into pieces"},
    Steps<refuse, run>(), pass_over);

}  // namespace ocltensor::opencl::attention
