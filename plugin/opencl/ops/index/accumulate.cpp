// Combines sources into a target without atomics: the launches behind scatter, index_add, index_put
// and embedding's gradient.
#include <algorithm>

#include "accumulate_params.h"
#include "call/algorithms.h"
#include "call/divide_up.h"
#include "call/division.h"
#include "call/scalar_bits.h"
#include "kernels/index.h"
#include "ops/copy/copy.h"
#include "runs.h"

namespace ocltensor::opencl::index {
namespace {

const char* combine_name(Combine how) {
  switch (how) {
    case Combine::Replace: return "combine_replace";
    case Combine::Product: return "combine_product";
    case Combine::Max: return "combine_max";
    case Combine::Min: return "combine_min";
    default: return "combine_sum";
  }
}

bool is_one(Scalar value) { return value.as_double() == 1; }

}  // namespace

Defines accumulation_defines(const Accumulation& what) {
  const DType type = what.target.dtype();
  Defines d;
  d.type(define::A, type)
      .type(define::S, what.source.dtype())
      .set(define::FLOATING, is_floating(type));
  d.set(define::COMBINE, combine_name(what.how)).set(define::FIRST, !what.include_self);
  d.set(define::HAS_ALPHA, !is_one(what.alpha));
  return d;
}

namespace {

void fill_zero(const OpCall& call, const Scratch& memory) {
  const Place place = resolve(memory.address(), 0, static_cast<int64_t>(memory.bytes()));
  const int32_t zero = 0;
  call.stream().fill(place.buffer, place.offset, &zero, 4, memory.bytes());
}

void divide_means(const OpCall& call, const Accumulation& what, const Scratch& counts) {
  Defines d = accumulation_defines(what);
  d.set(define::COUNTED, 1);
  const int64_t elements = what.target.numel();
  const Division division = divide(call.caps(), elements, 1024);
  call.launch(kernels::index::accumulate::mean, d,
              {.target = what.target,
               .count = counts,
               .elements = elements,
               .per_item = division.per_item,
               .extra = what.include_self})
      .run(division.global, division.local);
}

// Divides the groups among work-items. On CPU drivers a group's target blocks are cut into ranges
// as well, one for each processor, where rows are so long that adding them takes much longer than
// reading all keys, which every work-item does.
Division divide_groups(const OpCall& call, const Accumulation& what, AccumulateParams& p) {
  constexpr int64_t kLongRow = 32, kMostParts = 64;
  p.group_pieces = 1;
  p.pieces = what.groups;
  if (by_style(call, false, true)) {
    p.pieces = what.groups * what.block;
    return divide(call.caps(), p.pieces);
  }
  const bool relative = what.target_blocks > 0 || what.groups == 1;
  const int64_t blocks =
      what.target_blocks > 0 ? what.target_blocks : what.target.numel() / what.block;
  const int64_t wanted = std::min<int64_t>(call.caps().compute_units, kMostParts) / what.groups;
  const int64_t numbers = what.length * what.block;
  if (relative && wanted > 1 && what.block >= kLongRow && numbers > 65536) {
    p.piece_blocks = divide_up(blocks, wanted);
    p.group_pieces = divide_up(blocks, p.piece_blocks);
    p.pieces = what.groups * p.group_pieces;
  }
  return divide(call.caps(), p.pieces, numbers > 4096 ? 1 : 1 + 4096 / numbers);
}

// Sums and replacements of complex numbers work on the parts alone: as real numbers in blocks of
// twice the size.
void accumulate_parts(const OpCall& call, const Accumulation& what) {
  const int64_t count = what.one_source ? what.groups * what.length * what.block : 0;
  const Scratch memory = call.scratch(static_cast<uint64_t>(count * what.source.itemsize()));
  const Dims flat{what.one_source ? count : what.source.numel()};
  const LocalTensor spread(memory.address(), what.source.dtype(), flat);
  if (what.one_source) copy_tensor(call, spread, copy::view_of(what.source, flat, {0}, 0));
  const LocalTensor source = what.one_source
                                 ? copy::as_real(spread)
                                 : copy::as_real(copy::view_of(what.source, flat, {1}, 0));
  const LocalTensor target =
      copy::as_real(copy::view_of(what.target, {what.target.numel()}, {1}, 0));
  Accumulation parts = what;
  parts.source = source;
  parts.target = target;
  parts.block = 2 * what.block;
  parts.one_source = false;
  accumulate(call, parts);
}

void accumulate_in_sequence(const OpCall& call, const Accumulation& what) {
  AccumulateParams p{};
  p.groups = what.groups;
  p.length = what.length;
  p.block = what.block;
  p.key_step = what.shared_keys ? 0 : what.length;
  p.target_step = what.target_blocks;
  p.source_step = what.one_source ? 0 : 1;
  p.alpha = scalar_bits(what.alpha, what.target.dtype());
  const Division division = divide_groups(call, what, p);
  p.per_item = division.per_item;
  const bool counted = !what.include_self || what.how == Combine::Mean;
  const Scratch counts = call.scratch(counted ? static_cast<uint64_t>(what.target.numel()) * 4 : 0);
  if (counted) fill_zero(call, counts);
  Defines d = accumulation_defines(what);
  d.set(define::COUNTED, counted);
  call.launch(
          kernels::index::accumulate::accumulate, d,
          {.target = what.target, .count = counts, .key = what.keys, .source = what.source, .p = p})
      .run(division.global, division.local);
  if (what.how == Combine::Mean) divide_means(call, what, counts);
}

constinit const AlgorithmFor<Accumulation> kRunsGpu(
    {.id = "accumulate.runs_gpu",
     .description = "sorted by keys, whose runs are cut into chunks",
     .style = DeviceStyle::Gpu},
    Steps<refuse_runs, accumulate_runs_gpu>(), pass_over_runs_gpu);
constinit const AlgorithmFor<Accumulation> kRunsCpu(
    {.id = "accumulate.runs_cpu",
     .description = "packed with their positions and sorted by digits; long chunks of runs",
     .style = DeviceStyle::Cpu},
    Steps<refuse_runs, accumulate_runs_cpu>(), pass_over_runs_cpu);
constinit const AlgorithmFor<Accumulation> kSequence(
    {.id = "accumulate.sequence", .description = "one after another", .last_resort = true},
    Steps<takes_all<Accumulation>, accumulate_in_sequence>());

struct AccumulationTraits {
  static std::string describe(const OpCall& call, const Accumulation& what) {
    return fmt::format("{} {} x {} rows of {}", call.name(), what.groups, what.length, what.block);
  }
};
using AccumulationAlgorithms = AlgorithmList<Accumulation, AccumulationTraits>;

AccumulationAlgorithms& algorithms() {
  static AccumulationAlgorithms& list = *new AccumulationAlgorithms(
      "accumulate", scatter_operators(), {&kRunsGpu, &kRunsCpu, &kSequence});  // leaked
  return list;
}

}  // namespace

const AlgorithmFamily& accumulation_algorithms() { return algorithms().family(); }

void accumulate(const OpCall& call, const Accumulation& what) {
  if (what.groups * what.length * what.block == 0 || what.target.numel() == 0) return;
  if (is_complex(what.target.dtype())) return accumulate_parts(call, what);
  algorithms().run(call, what);
}

namespace {

std::vector<Scratch> memory_for(const OpCall& call, TensorView ordered, DType type) {
  std::vector<Scratch> memory;
  if (!ordered.is_contiguous() || type != ordered.dtype())
    memory.push_back(call.scratch(static_cast<uint64_t>(ordered.numel() * size_of(type))));
  return memory;
}

}  // namespace

Target::Target(const OpCall& call, TensorView out, const Dims& order)
    : call_(call),
      ordered_(copy::permuted(out, order)),
      memory_(memory_for(call, ordered_, compute_type(out.dtype()))),
      local_(memory_.empty() ? ordered_.view().address() : memory_[0].address(),
             compute_type(out.dtype()), Dims(ordered_.view().sizes())) {}

void Target::start_from(TensorView self, const Dims& order) {
  copy_tensor(call_, local_, copy::permuted(self, order));
}

void Target::finish() {
  if (!memory_.empty()) copy_tensor(call_, ordered_, local_);
}

}  // namespace ocltensor::opencl::index
