// _ocl_dequantise: the values of a quantised weight, whole or of chosen rows.
#include <algorithm>

#include "call/divide_up.h"
#include "call/division.h"
#include "kernels/quantised.h"
#include "quantised.h"

namespace ocltensor::opencl::quantised {
namespace {

// Of rows from `first` on, or of those that the index says.
struct Rows {
  int64_t first, count;
  std::optional<TensorView> index;
};

// GPUs store 16 bytes at once where rows of the result begin at their multiples.
bool has_aligned_rows(const QuantisedWeight& w, MemoryRange to) {
  return has_whole_rows(w) && (to.address + static_cast<uint64_t>(to.low)) % 16 == 0;
}

// By unpack_gpu.cl, whose work-items take steps of units. Large units have too many steps to be
// loaded for each.
void launch_steps(const OpCall& call, const QuantisedWeight& w, int64_t first, int64_t count,
                  MemoryRange to, DType type) {
  constexpr int64_t kStep = 8;
  const WeightFormat& f = *w.format;
  const int64_t group = std::min<int64_t>(128, call.caps().max_work_group_size);
  QuantisedParams p = weight_params(w);
  p.first = first;
  p.pieces = count * w.k / kStep;
  const bool apart = f.loads == 1 && !f.is(kAlternating);  // see store_step
  Defines d = weight_defines(call, w, true);
  d.type(define::TYPE, type).set(define::GROUP_SIZE, group);
  d.set(define::VEC, apart ? 4 : 16 / size_of(type));
  call.launch(kernels::quantised::unpack_gpu::unpack, d,
              {.out = to, .weight = w.bytes, .scale = w.scale, .zero = w.zero, .p = p})
      .run({divide_up(p.pieces, group) * group, 1, 1}, {group, 1, 1});
}

void launch(const OpCall& call, const QuantisedWeight& w, const Rows& rows, MemoryRange to,
            DType type) {
  constexpr int64_t kLargeUnit = 128;
  const bool aligned = by_style(call, false, has_aligned_rows(w, to));
  if (aligned && !rows.index && w.format->unit < kLargeUnit && rows.count * w.k > 0)
    return launch_steps(call, w, rows.first, rows.count, to, type);
  const bool by_elements = w.format->layout == WeightLayout::Flat && !has_whole_rows(w);
  QuantisedParams p = weight_params(w);
  const int64_t unit = w.format->unit;
  p.m = rows.count;
  p.first = by_elements ? rows.first * w.k : rows.first;
  p.pieces = by_elements ? divide_up(p.first % unit + rows.count * w.k, unit)
                         : rows.count * divide_up(w.k, unit);
  if (p.pieces == 0) return;
  const Division division = divide(call.caps(), p.pieces);
  p.per_item = division.per_item;
  Defines d = weight_defines(call, w, has_whole_rows(w));
  d.type(define::TYPE, type).set(define::ELEMENTS, by_elements);
  d.set(define::INDEXED, rows.index.has_value());
  d.type(define::I, rows.index ? rows.index->dtype() : DType::Int64);
  d.set(define::GROUP_SIZE, division.local[0]).set(define::VEC, aligned ? 16 / size_of(type) : 1);
  call.launch(kernels::quantised::unpack::unpack, d,
              {.out = to,
               .weight = w.bytes,
               .scale = w.scale,
               .zero = w.zero,
               .index = rows.index,
               .faults = call.fault(FaultKind::Index, 0),
               .p = p})
      .run(division.global, division.local);
}

void dequantise(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  const auto size = args.ints(Arg::size);
  QuantisedWeight w = quantised_weight(args, size[0], size[1]);
  const auto index = args.optional_tensor(Arg::index);
  const DType type = call.out(0).dtype();
  if (compute_type(type) != DType::Float32)
    unsupported(TB_REASON_DTYPE, "{} is not implemented for {}", call.name(), name(type));
  if (index && w.format->layout == WeightLayout::Flat && !has_whole_rows(w))
    unsupported(TB_REASON_SIZE, "{}: rows of format {} with K = {}, which is not a multiple of {}",
                call.name(), w.format->name, w.k, w.format->unit);
  call.accept();
  if (call.out(0).numel() == 0) return;
  const Contiguous bytes(call, w.bytes);
  w.bytes = bytes.view();
  std::optional<Contiguous> rows;
  if (index) rows.emplace(call, *index);
  ContiguousOutput out(call, call.out(0));
  launch(call, w, {0, call.out(0).size(0), rows ? std::optional(rows->view()) : std::nullopt}, out,
         type);
  out.finish();
}

constexpr OpEntry kOperators[] = {{"_ocl_dequantise.out", dequantise, false, false, true}};

}  // namespace

void unpack_rows(const OpCall& call, const QuantisedWeight& w, int64_t first, int64_t count,
                 tb_address to, DType type) {
  launch(call, w, {first, count, std::nullopt}, {to, 0, count * w.k * size_of(type)}, type);
}

std::span<const OpEntry> unpack_operators() { return kOperators; }

}  // namespace ocltensor::opencl::quantised
