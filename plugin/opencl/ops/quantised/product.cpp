// _ocl_quantised_mm: x W^T + bias; the list of algorithms, and what their kernels are told of a
// weight.
#include <bit>

#include "call/division.h"
#include "kernels/defines.h"
#include "quantised.h"

namespace ocltensor::opencl::quantised {
namespace {

struct Traits {
  static std::string describe(const OpCall& call, const Product& p) {
    return fmt::format("{} {} {} x {} x {}, {}", call.name(), name(p.x.dtype()), p.m(), p.weight.n,
                       p.weight.k, p.weight.format->name);
  }
};
using Algorithms = AlgorithmList<Product, Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms(
      "quantised", product_operators(),
      {&kDecodeBlocks, &kDecodeCpu, &kDecodeDots, &kDecodeGpu, &kPanels});  // leaked
  return list;
}

// The largest power of two at whose multiples kernels load a weight's bytes.
int64_t alignment(const QuantisedWeight& w) {
  int64_t a = w.format->align;
  const bool has_rows = w.format->layout == WeightLayout::Rows && w.n > 1;
  while (a > 1 &&
         (w.bytes.address() % static_cast<uint64_t>(a) != 0 || (has_rows && w.pitch() % a != 0)))
    a /= 2;
  return a;
}

// A copy where the bytes have gaps, or where blocks that hold numbers of 16 bits begin at odd
// addresses.
bool needs_copy(TensorView bytes, const WeightFormat& format) {
  return !bytes.is_contiguous() ||
         (format.scales == WeightScales::Within && bytes.address() % 2 != 0);
}

void quantised_mm(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  const TensorView x = args.tensor(Arg::self);
  if (compute_type(x.dtype()) != DType::Float32)
    unsupported(TB_REASON_DTYPE, "{} is not implemented for {}", call.name(), name(x.dtype()));
  QuantisedWeight weight = quantised_weight(args, args.integer(Arg::n), x.size(1));
  call.accept();
  if (call.out(0).numel() == 0) return;
  std::optional<Contiguous> x_copy, bytes_copy;
  const bool has_rows = x.stride(1) == 1 || x.size(1) == 1;
  if (!has_rows) x_copy.emplace(call, x);
  if (needs_copy(weight.bytes, *weight.format)) {
    bytes_copy.emplace(call, weight.bytes);
    weight.bytes = bytes_copy->view();
  }
  ContiguousOutput out(call, call.out(0));
  algorithms().run(
      call, {weight, has_rows ? x : x_copy->view(), out.view(), args.optional_tensor(Arg::bias)});
  out.finish();
}

constexpr OpEntry kOperators[] = {{"_ocl_quantised_mm.out", quantised_mm, false, false, true}};

}  // namespace

bool has_whole_rows(const QuantisedWeight& w) { return w.k % w.format->unit == 0; }

QuantisedParams weight_params(const QuantisedWeight& w) {
  constexpr int64_t kOneGroup = 31;  // as many as the bits of any K
  QuantisedParams p{};
  p.n = w.n;
  p.k = w.k;
  p.pitch = w.pitch();
  p.end = w.bytes.numel() * w.bytes.itemsize();
  const bool flat = w.format->layout == WeightLayout::Flat;
  const auto log2 = [](int64_t power) { return std::bit_width(static_cast<uint64_t>(power)) - 1; };
  p.shift = w.group == w.k && !flat ? kOneGroup : w.group > 0 ? log2(w.group) : 0;
  if (w.format->layout == WeightLayout::Tiles) p.tile = log2(w.tile_columns());
  const auto strides = [&](const std::optional<TensorView>& part, tk_i64& row, tk_i64& group) {
    if (!part) return;
    row = flat || part->size(0) == 1 ? 0 : part->stride(0);
    group = part->stride(flat ? 0 : 1);
  };
  strides(w.scale, p.scale_row, p.scale_group);
  strides(w.zero, p.zero_row, p.zero_group);
  return p;
}

Defines weight_defines(const OpCall& call, const QuantisedWeight& w, bool whole) {
  const WeightFormat& f = *w.format;
  Defines d;
  d.set(define::FORMAT, f.name).set(define::UNIT, f.unit).set(define::SPAN, f.span);
  d.set(define::ALTERNATING, f.is(kAlternating)).set(define::OFFSETS, f.is(kOffsets));
  d.set(define::CODED, f.is(kCoded)).set(define::FLAT, f.layout == WeightLayout::Flat);
  d.set(define::LOADS, f.loads).set(define::UPPER_LOADS, f.upper);
  d.set(define::FIFTH_BITS, f.is(kFifthBits));
  d.set(define::GIVEN_CODES, f.zero == WeightZero::Codes);
  d.set(define::BYTE_ZEROS, w.zero && w.zero->itemsize() == 1);
  d.type(define::SCALE_TYPE, w.scale ? w.scale->dtype() : DType::UInt8);
  d.type(define::ZERO_TYPE, w.zero ? w.zero->dtype() : DType::UInt8);
  return d.set(define::ALIGNED, by_style<int64_t>(call, 1, alignment(w))).set(define::WHOLE, whole);
}

std::span<const OpEntry> product_operators() { return kOperators; }

const AlgorithmFamily& quantised_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::quantised
