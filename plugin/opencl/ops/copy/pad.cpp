// _ocl_pad and its gradient: padding by reflection and replication, in one launch over tensors of
// any strides.
#include <algorithm>
#include <cstdlib>

#include "call/divide_up.h"
#include "call/division.h"
#include "call/quotient.h"
#include "copy.h"
#include "kernels/copy.h"
#include "pad_params.h"

namespace ocltensor::opencl::copy {
namespace {

// A dimension of the nest: of the tensor before padding and after it.
struct Axis {
  int64_t size, padded, before;
  int64_t to, from;  // strides of what is written and read
};
// Innermost first; the padded ones are adjacent.
struct Nest {
  std::vector<Axis> axes;
  size_t inner = 0;  // dimensions inside of those that are padded
  size_t padded = 0;
};

// Appends dimensions that are not padded, those with the smallest stride first, joined where both
// tensors allow it.
void append_joined(std::vector<Axis>& axes, std::vector<Axis> kept) {
  std::ranges::sort(kept, {}, [](const Axis& a) { return std::abs(a.to); });
  bool joins = false;
  for (const Axis& axis : kept) {
    if (axis.size == 1) continue;
    Axis* last = joins ? &axes.back() : nullptr;
    if (joins && axis.to == last->to * last->size && axis.from == last->from * last->size) {
      last->size *= axis.size;
      last->padded = last->size;
    } else {
      axes.push_back(axis);
    }
    joins = true;
  }
}

// Which dimensions are innermost depends on the tensor that is written: its channels may lie inside
// of what is padded.
Nest make_nest(TensorView target, TensorView source, std::span<const int64_t> padding,
               int64_t first_padded, bool backward) {
  const TensorView small = backward ? target : source, large = backward ? source : target;
  const auto dims = static_cast<int64_t>(padding.size() / 2);
  std::vector<Axis> padded, inside, outside;
  int64_t smallest = INT64_MAX;
  for (int64_t k = 0; k < dims; ++k) {
    const int64_t d = first_padded + dims - 1 - k;
    const auto at = static_cast<size_t>(d);
    padded.push_back({small.size(d), large.size(d), padding[static_cast<size_t>(2 * k)],
                      target.strides()[at], source.strides()[at]});
    if (target.size(d) > 1) smallest = std::min(smallest, std::abs(target.strides()[at]));
  }
  for (int64_t d = 0; d < target.ndim(); ++d) {
    if (d >= first_padded && d < first_padded + dims) continue;
    const auto at = static_cast<size_t>(d);
    const int64_t to = target.strides()[at];
    (std::abs(to) < smallest ? inside : outside)
        .push_back({target.size(d), target.size(d), 0, to, source.strides()[at]});
  }
  Nest nest;
  append_joined(nest.axes, std::move(inside));
  nest.inner = nest.axes.size();
  nest.padded = padded.size();
  nest.axes.insert(nest.axes.end(), padded.begin(), padded.end());
  append_joined(nest.axes, std::move(outside));
  return nest;
}

// From `begin` on to `end`, what is written is one element of what is read.
void set_range(PadParams& p, size_t d, const Axis& axis, bool backward, bool reflects) {
  const int64_t before = axis.before, after = axis.padded - axis.size - before;
  int64_t begin = std::max<int64_t>(before, 0), end = std::min(axis.padded, axis.size + before);
  if (backward) {
    begin = before > 0 ? (reflects ? before + 1 : 1) : -before;
    end = after > 0 ? axis.size - 1 - (reflects ? after : 0) : axis.size + after;
  }
  p.begin[d] = begin;
  p.end[d] = std::max(begin, end);
}

PadParams params_for(const OpCall& call, const Nest& nest, int64_t elements, bool backward,
                     bool reflects) {
  PadParams p{};
  const Axis& row = nest.axes[0];
  const int64_t length = backward ? row.size : row.padded;
  p.chunk = by_style<int64_t>(
      call, std::min(length, std::max<int64_t>(1024, divide_up(elements, 64))), 1);
  for (size_t d = 0; d < nest.axes.size(); ++d) {
    const Axis& axis = nest.axes[d];
    p.sizes[d] = axis.size;
    p.padded[d] = axis.padded;
    p.before[d] = axis.before;
    p.to[d] = axis.to;
    p.from[d] = axis.from;
    p.steps[d] = d == 0 ? divide_up(length, p.chunk) : backward ? axis.size : axis.padded;
    set_range(p, d, axis, backward, reflects);
  }
  p.pieces = elements / length * p.steps[0];
  return p;
}

// Whether elements can be counted, and places be mirrored, in 32 bits.
bool is_narrow(const Nest& nest, int64_t elements) {
  constexpr int64_t kLimit = int64_t{1} << 30;
  return elements < kLimit && std::ranges::all_of(nest.axes, [](const Axis& a) {
           return a.size < kLimit && a.padded < kLimit && std::abs(a.before) < kLimit;
         });
}

void launch_pad(const OpCall& call, TensorView target, TensorView source, int64_t first_padded,
                bool backward) {
  const bool reflects = call.args().string(Arg::mode) == "reflect";
  const auto padding = call.args().ints(Arg::padding);
  const Nest nest = make_nest(target, source, padding, first_padded, backward);
  const int64_t elements = target.numel();
  PadParams p = params_for(call, nest, elements, backward, reflects);
  const bool narrow = is_narrow(nest, elements);
  set_quotients(std::span(p.steps).first(nest.axes.size()),
                narrow ? IndexWidth::Bits32 : IndexWidth::Bits64, p.multipliers, p.shifts);
  const Division division = divide(call.caps(), p.pieces);
  p.per_item = division.per_item;
  Defines d;
  d.type(define::M, carrier_type(target.dtype())).set(define::REFLECTS, reflects);
  d.set(define::RANK, static_cast<int64_t>(nest.axes.size())).set(define::NARROW, narrow);
  d.set(define::UNIT, p.to[0] == 1 && p.from[0] == 1);
  if (!backward) {
    call.launch(kernels::copy::pad::pad, d, {.out = target, .in = source, .p = p})
        .run(division.global, division.local);
    return;
  }
  d.type(define::A, target.dtype());
  d.set(define::INNER, static_cast<int64_t>(nest.inner))
      .set(define::PADDED, static_cast<int64_t>(nest.padded));
  call.launch(kernels::copy::pad_backward::pad_backward, d, {.out = target, .in = source, .p = p})
      .run(division.global, division.local);
}

// Elements of 16 bytes are moved, and complex numbers added, as two numbers along a new last
// dimension.
void run(OpCall& call, Arg argument, bool backward) {
  check_outputs(call);
  const TensorView source = call.args().tensor(argument), target = call.out(0);
  const auto dims = static_cast<int64_t>(call.args().ints(Arg::padding).size() / 2);
  const int64_t first_padded = source.ndim() - dims;
  call.accept();
  if (!call.wants(0)) return;
  if (is_complex(source.dtype()) && (backward || source.itemsize() > 8))
    launch_pad(call, as_real(target), as_real(source), first_padded, backward);
  else
    launch_pad(call, target, source, first_padded, backward);
}

void pad(OpCall& call) { run(call, Arg::self, false); }
void pad_backward(OpCall& call) { run(call, Arg::grad_output, true); }

constexpr OpEntry kOperators[] = {{"_ocl_pad.out", pad, true, true, true, true},
                                  {"_ocl_pad_backward.out", pad_backward, true}};

}  // namespace

const std::span<const OpEntry> kPadOperators = kOperators;

}  // namespace ocltensor::opencl::copy
