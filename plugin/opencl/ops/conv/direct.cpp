// Direct convolution for CPU drivers, forward and data. The data direction is a forward convolution
// over flipped weights: one launch for every remainder of the position by the stride, so that no
// zero is multiplied.
#include "kernels/conv.h"
#include "rows.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kBlock = 32;                           // output channels of a block, direct.cl
constexpr int64_t kTileBytes = 4 * kDirectColumns * 64;  // sums of a tile
constexpr int64_t kPackedBytes = kBlock * 4;             // weights of a block for one k
constexpr int64_t kMostPacked = 768;  // k of a chunk: 96 KiB, which the second-level cache keeps
constexpr int64_t kGoodRun = 28;      // tiles over which packing weights costs about 3 %
constexpr int64_t kLongestRun = 64;

// What local memory has room for; the rule leaves half of it, for a second work-group.
int64_t room(const OpCall& call) {
  return static_cast<int64_t>(call.caps().local_memory) / kPackedBytes;
}
int64_t most_packed(const OpCall& call) { return std::min(kMostPacked, room(call) / 2); }

const char* refuse(const OpCall& call, const Problem& p) {
  if (const char* reason = refuse_phases(p)) return reason;
  const ConvParams& g = p.params;
  if (p.direction == Direction::Weight) return "the gradient of weights";
  if (g.window[1] * g.window[2] > most_packed(call)) return "a window of very many elements";
  if (p.direction == Direction::Data)
    for (size_t d = 1; d < 3; ++d)
      if (g.stride[d] > 1 && g.dilation[d] > 1) return "transposed with stride and dilation";
  return nullptr;
}

// Divides the tiles into runs, one for each work-item: 12 work-items per compute unit, fewer (down
// to 4) where runs would be so short that packing weights, which each item does for itself, takes
// more than 3 % of its time.
void divide_tiles(const OpCall& call, ConvRowsParams& q, int64_t groups, const DirectSizes& sizes) {
  const int64_t tiles = divide_up(q.segments, 2);
  const int64_t total = tiles * q.blocks * groups;
  const int64_t items = work_items(call);
  const int64_t least = std::min(kGoodRun, divide_up(3 * total, items));
  const int64_t by_rule = std::clamp<int64_t>(divide_up(total, items), least, kLongestRun);
  const int64_t run = sizes.run == 0 ? by_rule : sizes.run;
  q.per_item = divide_up(tiles, divide_up(tiles, run));
  const int64_t taps = q.taps_y * q.taps_x;
  const int64_t terms = sizes.terms == 0 ? most_packed(call) : sizes.terms;
  const int64_t fit = std::max<int64_t>(1, terms / std::max<int64_t>(1, taps));
  q.inputs_per_chunk =
      std::max<int64_t>(1, divide_up(q.inputs, divide_up(std::max<int64_t>(1, q.inputs), fit)));
}

}  // namespace

void run_direct(const OpCall& call, const Problem& p, const Phase& phase, const PaddedMap& map,
                const matmul::Guard& guard, const DirectSizes& sizes) {
  const ConvParams& g = p.params;
  const bool forward = p.direction == Direction::Forward;
  ConvRowsParams q = rows_params(p, phase, map);
  q.segments = g.batch * q.height * divide_up(q.width, kDirectColumns);
  q.blocks = divide_up(q.outputs, kBlock);
  divide_tiles(call, q, g.groups, sizes);
  // The smaller operand is swept by the inner loop, so that it stays in the cache.
  q.channels_inner = g.batch * map.image > q.outputs * q.inputs * g.groups * q.taps_y * q.taps_x;
  if (sizes.inner != 0) q.channels_inner = sizes.inner == 1;

  const int64_t runs = divide_up(divide_up(q.segments, 2), q.per_item);
  const bool waits = q.inputs_per_chunk < q.inputs;
  const Scratch sums = call.scratch(
      waits ? static_cast<uint64_t>(runs * q.blocks * g.groups * q.per_item * kTileBytes) : 0);
  Defines d;
  d.type(define::TYPE, p.dtype);
  const int64_t packed = std::max<int64_t>(1, q.inputs_per_chunk * q.taps_y * q.taps_x);
  Grid grid{runs, q.blocks, g.groups};
  if (q.channels_inner) std::swap(grid[0], grid[1]);
  call.launch(kernels::conv::direct::conv_direct, d,
              {.y = forward ? memory_of_small(p) : memory_of_big(p),
               .x = map,
               .w = memory_of_weight(p),
               .bias = memory_of_bias(p),
               .sums = sums,
               .word = guard.word == 0 ? MemoryRange(nullptr) : guard.memory(),
               .packed = LocalBytes(static_cast<size_t>(packed * kPackedBytes)),
               .wanted = guard.value,
               .p = q})
      .run(grid, {1, 1, 1});
}

namespace {

Planned<DirectSizes> plan(const OpCall& call, const Problem& p, const Configuration& c) {
  if (const char* reason = refuse(call, p)) return reason;
  if (c.empty()) return DirectSizes{};
  if (c.size() != 3) return "it has three sizes";
  const DirectSizes sizes{c[0], c[1], c[2]};
  const int64_t window = p.params.window[1] * p.params.window[2];
  if (sizes.run < 1 || sizes.run > kLongestRun) return "no such run of tiles";
  if (sizes.terms < window || sizes.terms > room(call)) return "weights do not fit";
  if (sizes.inner != 1 && sizes.inner != 2) return "no such order";
  return sizes;
}

Configurations space(const OpCall&, const Problem&) {
  Configurations all;
  for (const int64_t inner : {1, 2})
    for (const int64_t terms : {768, 384, 1536, 192})
      for (const int64_t run : {28, 14, 56, 7}) all.push_back({run, terms, inner});
  return all;
}

void run(const OpCall& call, const Problem& p, const DirectSizes& sizes) {
  const std::vector<Phase> phases = phases_of(p);
  Reach y{INT64_MAX, INT64_MIN};
  Reach x = y;
  for (const Phase& phase : phases) {
    widen(y, phase.y, 1);
    widen(x, phase.x, kDirectColumns);
  }
  if (y.low > y.high || x.low > x.high) y = x = {0, 0};  // no phase has a tap
  const PaddedMap map =
      pad_map(call, p, {.is_big = p.direction == Direction::Forward, .y = y, .x = x});
  for (const Phase& phase : phases)
    if (phase.y.outputs > 0 && phase.x.outputs > 0) run_direct(call, p, phase, map, {}, sizes);
}

}  // namespace

constinit const AlgorithmFor<Problem> kDirect({.id = "conv.direct",
                                               .description = "direct tiles",
                                               .style = DeviceStyle::Cpu,
                                               .parameters = {"run", "terms", "inner"}},
                                              Steps<plan, run, space>());

}  // namespace ocltensor::opencl::conv
